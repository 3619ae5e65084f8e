// SPDX-License-Identifier: GPL-3.0-or-later

/// The cipher suites, groups and signatures that a connection may use. TR-03116-4, 2. Both profiles use only TLS 1.2,
/// because their suites belong to TLS 1.2.
package struct TLSProfile: Sendable, Equatable {
    /// OpenSSL's names, the preferred suite first.
    package let suites: String
    /// nil when no suite of the profile uses a group.
    package let groups: String?
    package let signatures: String

    /// For a service, and for an eID-Server that is attached to a service.
    package static let standard = TLSProfile(
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

    /// For an eID-Server with a pre-shared key. RFC 4279, RFC 5487.
    package static let preSharedKey = TLSProfile(
        suites: "RSA-PSK-AES256-GCM-SHA384:RSA-PSK-AES128-GCM-SHA256:RSA-PSK-AES256-CBC-SHA",
        groups: nil,
        signatures: "RSA+SHA512:RSA+SHA384:RSA+SHA256"
    )

    /// The minimum number of bits of a key in a certificate or a key agreement. TR-03116-4, 2.
    package static func minimumBits(isElliptic: Bool) -> Int { isElliptic ? 250 : 3000 }
}
