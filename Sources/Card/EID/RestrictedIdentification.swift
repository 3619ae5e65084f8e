// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import Crypto
import Text

/// Restricted identification: a pseudonym of the card for one sector. TR-03110-2 3.5, TR-03110-3 B.4.
package enum RestrictedIdentification {
    /// id-RI-ECDH.
    private static let protocols = DigestProtocol(family: OID.restrictedIdentification + [2])

    /// The content of id-RI-ECDH-SHA-1 to -512.
    package static func protocolID(_ digest: DigestAlgorithm) -> [UInt8] { protocols.protocolID(digest) }

    /// The hash function of such an object identifier; nil for another identifier.
    package static func digest(of protocolID: [UInt8]) -> DigestAlgorithm? { protocols.digest(of: protocolID) }

    /// Computes the pseudonym: the hash of the agreed x coordinate at full length.
    package static func identifier(
        _ key: borrowing ECPrivateKey,
        sector: ECPublicKey,
        digest: DigestAlgorithm
    ) throws(CryptoError) -> [UInt8] {
        try digest.hash(try key.sharedSecret(with: sector)).withBytes { Array($0) }
    }
}
