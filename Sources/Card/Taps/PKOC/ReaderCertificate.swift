// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Vault

/// The certificate of a PKOC reader, 138 bytes. The first 74 bytes are version 1, location, site, two times and the
/// compressed key. The signature of the site's issuer over them follows. PKOC BLE 2.0.1.
package struct ReaderCertificate: Sendable, Equatable {
    package let location: [UInt8]
    package let site: [UInt8]
    /// Seconds since 1970; 0: no limit.
    package let notBefore: UInt32
    /// Seconds since 1970; the largest number: no limit.
    package let notAfter: UInt32
    package let key: ECPublicKey
    private let signed: [UInt8]
    private let signature: [UInt8]

    package static let count = 138
    private static let signedCount = 74

    /// - Throws: `.malformed` for another length or version, or a key that is not on the curve.
    package init(_ bytes: [UInt8]) throws(PKOCProblem) {
        guard bytes.count == Self.count, bytes[0] == 1,
            let key = try? ECPublicKey(compressedPoint: Array(bytes[41..<74]), on: .secp256r1)
        else { throw .malformed }
        location = Array(bytes[1..<17])
        site = Array(bytes[17..<33])
        notBefore = UInt32(bigEndian: bytes[33..<37])
        notAfter = UInt32(bigEndian: bytes[37..<41])
        self.key = key
        signed = Array(bytes.prefix(Self.signedCount))
        signature = Array(bytes.dropFirst(Self.signedCount))
    }

    package func isSigned(by issuer: ECPublicKey) -> Bool {
        (try? ECDSA.verify(signature, of: signed, with: issuer, digest: .sha256)) ?? false
    }

    /// `now` is in seconds since 1970.
    package func isValid(at now: UInt32) -> Bool { notBefore <= now && now <= notAfter }
}
