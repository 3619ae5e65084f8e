// SPDX-License-Identifier: GPL-3.0-or-later

/// Why a dialogue with a PKOC reader ended without an answer of the reader.
package enum PKOCFailure: Error, Sendable, Equatable {
    /// A message, certificate or list has another form than PKOC defines.
    case malformed
    /// A well-formed message that does not fit the state of the dialogue.
    case unexpectedMessage
    /// No credential is for this site or this reader.
    case unknownSite
    /// The reader did not prove that it belongs to the site.
    case wrongSignature
    /// The site is known by its issuer only, and the reader has presented no certificate.
    case noCertificate
    case certificateInvalid
    case certificateExpired
    /// The site has revoked the reader, whatever the reader presents.
    case readerRevoked
    /// The credential key did not sign, with the reason.
    case key(String?)
    /// The link failed or a time limit has passed, with the status and the reason.
    case link(OpeningStatus, String)
    /// libcrypto failed.
    case cryptography

    /// The reason for people.
    package var text: String {
        switch self {
        case .malformed: "the reader has sent a malformed message"
        case .unexpectedMessage: "the reader has sent a message that does not fit the dialogue"
        case .unknownSite: "no key is for the site of this reader"
        case .wrongSignature: "the reader has not proved that it belongs to its site"
        case .noCertificate: "the reader has presented no certificate"
        case .certificateInvalid: "the certificate of the reader is not of its site"
        case .certificateExpired: "the certificate of the reader is not valid now"
        case .readerRevoked: "the reader is revoked"
        case .key(let reason): reason ?? "the key could not sign"
        case .link(_, let reason): reason
        case .cryptography: "a cryptographic operation failed"
        }
    }
}
