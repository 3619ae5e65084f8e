// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// A private key with its chain code, from which keys are derived. BIP-32.
package struct ExtendedPrivateKey: ~Copyable, Sendable {
    package let key: PrivateKey
    /// 32 bytes.
    package let chainCode: Secret

    /// The lengths of a seed in bytes. BIP-32, Master key generation.
    package static let seedCounts = 16...64

    /// Takes a key and its chain code of 32 bytes.
    package init(_ key: consuming PrivateKey, chainCode: consuming Secret) throws(CryptoError) {
        guard chainCode.count == 32 else { throw .invalidLength }
        self.key = key
        self.chainCode = chainCode
    }

    /// Makes the master key of a seed of 16 to 64 bytes.
    /// - Throws: `.invalidKey` for a seed without a master key, which has a chance of 1 in 2^127.
    package init(seed: borrowing Secret) throws(CryptoError) {
        guard Self.seedCounts.contains(seed.count) else { throw .invalidLength }
        let hash = try DigestAlgorithm.sha512.hmac(seed, key: Secret("Bitcoin seed".utf8))
        guard let left = hash.part(0..<32), let right = hash.part(32..<64) else { throw .invalidLength }
        try self.init(try PrivateKey(left), chainCode: right)
    }

    /// Derives the child with this index. BIP-32, CKDpriv.
    package borrowing func child(_ index: UInt32) throws(CryptoError) -> ExtendedPrivateKey {
        let suffix = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: index >> $0) }
        let message =
            if index & DerivationPath.hardened != 0 {
                Secret([0]).appending(key.scalar).appending(suffix)
            } else {
                Secret(key.publicKey.compressed + suffix)
            }
        let hash = try DigestAlgorithm.sha512.hmac(message, key: chainCode)
        guard let left = hash.part(0..<32), let right = hash.part(32..<64) else { throw .invalidLength }
        return try ExtendedPrivateKey(try key.adding(left), chainCode: right)
    }

    /// Derives the key at the end of a path.
    package borrowing func derive(_ path: DerivationPath) throws(CryptoError) -> ExtendedPrivateKey {
        var current = try ExtendedPrivateKey(try key.clone(), chainCode: chainCode.clone())
        for index in path.indexes { current = try current.child(index) }
        return current
    }

    /// SHA-256 of the uncompressed public key: the name of this master key on a Keycard.
    package var keyUID: [UInt8] {
        get throws(CryptoError) { try DigestAlgorithm.sha256.hash(key.publicKey.uncompressed) }
    }
}
