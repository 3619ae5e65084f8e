// SPDX-License-Identifier: GPL-3.0-or-later

/// The rules that decide about the certificates of a session, instead of the authorities of the system.
///
/// The rules must outlive the connections that they have prepared.
package protocol TLSRules: AnyObject {
    /// Begins a transfer to `host`, and forgets the last fault.
    func reset(host: String)

    /// Configures a new SSL_CTX; false when libssl lacks what the rules need.
    func prepare(_ context: OpaquePointer) -> Bool

    /// The rule that the last handshake broke; nil after a good one.
    var fault: TLSFault? { get }
}

/// The rule that a connection broke, other than those that libssl enforces.
package enum TLSFault: Error, Sendable, Equatable {
    /// The certificate or its chain is invalid; words for the log.
    case certificate(String)
    case certificateKeyTooShort(bits: Int)
    case ephemeralKeyTooShort(bits: Int)
    /// The description of the service does not name the hash of the certificate.
    case notListed
    /// The attached eID-Server does not resume the TLS session of the TcToken.
    case notResumed

    var text: String {
        switch self {
        case .certificate(let words): words
        case .certificateKeyTooShort(let bits): "the key of its certificate has only \(bits) bits"
        case .ephemeralKeyTooShort(let bits): "its key agreement has only \(bits) bits"
        case .notListed: "its certificate is not listed in the description of the service"
        case .notResumed: "it does not resume the TLS session"
        }
    }
}
