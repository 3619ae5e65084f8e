// SPDX-License-Identifier: GPL-3.0-or-later

/// What a connection may use. TR-03116-4, chapter 2; both profiles are TLS 1.2 alone, since their suites are.
struct TLSProfile: Sendable, Equatable {
    /// OpenSSL's names, best first.
    let suites: String
    /// nil: no suite of the profile has any.
    let groups: String?
    let signatures: String

    /// Connections to a service, and to an eID-Server that is part of it.
    static let standard = TLSProfile(
        suites: """
            ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:DHE-RSA-AES256-GCM-SHA384:\
            ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256
            """,
        groups: "brainpoolP512r1:brainpoolP384r1:brainpoolP256r1:secp384r1:prime256v1",
        signatures: """
            RSA+SHA512:RSA+SHA384:RSA+SHA256:DSA+SHA512:DSA+SHA384:DSA+SHA256:\
            ECDSA+SHA512:ECDSA+SHA384:ECDSA+SHA256
            """
    )

    /// Connections to an eID-Server with a pre-shared key. RFC 4279, RFC 5487.
    static let preSharedKey = TLSProfile(
        suites: "RSA-PSK-AES256-GCM-SHA384:RSA-PSK-AES128-GCM-SHA256:RSA-PSK-AES256-CBC-SHA",
        groups: nil,
        signatures: "RSA+SHA512:RSA+SHA384:RSA+SHA256"
    )

    /// Bits of a key that is long enough, in a certificate as in a key agreement. TR-03116-4, 2.
    static func minimumBits(isElliptic: Bool) -> Int { isElliptic ? 250 : 3000 }
}

/// The rule that a connection broke, besides those that libssl itself enforces.
enum TLSFault: Error, Sendable, Equatable {
    /// The certificate or its chain; words for the log.
    case certificate(String)
    case certificateKeyTooShort(bits: Int)
    case ephemeralKeyTooShort(bits: Int)
    /// The description of the service does not name its hash.
    case notListed
    /// The attached eID-Server does not go on with the session of the TcToken.
    case notResumed
}
