// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// The key of a site, from which the pseudonyms of its credentials are made: 32 random bytes, the same on all hosts.
///
/// A pseudonym reveals nothing to those who do not hold the key. A plain hash would: whoever knows the public key of a card
/// could find its holder.
package final class SiteKey: Sendable {
    package static let count = 32
    private let key: Secret

    /// - Returns: nil for another number of bytes.
    package init?(_ key: consuming Secret) {
        guard key.count == Self.count else { return nil }
        self.key = key
    }

    /// The pseudonym of a credential: HMAC-SHA-256 of `badged credential`, 00 and the 32 bytes of x.
    package func credential(x: [UInt8]) throws(CryptoError) -> [UInt8] { try pseudonym("badged credential", x) }

    /// The pseudonym of a tag: the same with `badged tag` and the bytes of its UID.
    package func tag(uid: [UInt8]) throws(CryptoError) -> [UInt8] { try pseudonym("badged tag", uid) }

    /// The pseudonym of a key for doors: the same with `badged door key` and the identifier of the key.
    package func doorKey(_ identifier: String) throws(CryptoError) -> [UInt8] {
        try pseudonym("badged door key", Array(identifier.utf8))
    }

    private func pseudonym(_ label: String, _ content: [UInt8]) throws(CryptoError) -> [UInt8] {
        let hash = try DigestAlgorithm.sha256.hmac(Secret(Array(label.utf8) + [0] + content), key: key)
        return hash.withBytes { Array($0) }
    }
}
