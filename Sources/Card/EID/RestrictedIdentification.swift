// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Secrets

/// Restricted identification: a pseudonym of the card for one sector. TR-03110-2 3.5, TR-03110-3 B.4.
package enum RestrictedIdentification {
    /// id-RI-ECDH, 0.4.0.127.0.7.2.2.5.2.
    package static let family: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x05, 0x02]
    private static let digests: [DigestAlgorithm] = [.sha1, .sha224, .sha256, .sha384, .sha512]

    /// Content of id-RI-ECDH-SHA-1 to -512.
    package static func protocolID(_ digest: DigestAlgorithm) -> [UInt8] {
        family + [UInt8(truncatingIfNeeded: 1 + (digests.firstIndex(of: digest) ?? 0))]
    }

    /// The hash function of such an object identifier; nil for any other.
    package static func digest(of protocolID: [UInt8]) -> DigestAlgorithm? {
        digests.first { Self.protocolID($0) == protocolID }
    }

    /// The sector-specific identifier: the hash of the agreed x coordinate at full length.
    package static func identifier(
        _ key: borrowing ECPrivateKey,
        sector: ECPublicKey,
        digest: DigestAlgorithm
    ) throws(CryptoError) -> [UInt8] {
        try digest.hash(try key.sharedSecret(with: sector)).withBytes { Array($0) }
    }
}
