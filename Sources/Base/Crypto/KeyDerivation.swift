// SPDX-License-Identifier: GPL-3.0-or-later
package import Secrets

/// The key derivation function: the hash of secret and counter, cut to the key length. TR-03110-3 A.2.3,
/// ICAO 9303-11 9.7.1.
package enum KeyDerivation {
    /// The use of a key. The raw value is the counter that is hashed after the secret.
    package enum Purpose: UInt8, Sendable {
        case encryption = 1
        case authentication = 2
        case password = 3
    }

    /// Derives a key with SHA-1 for Triple DES and AES-128, and with SHA-256 for longer keys. Keys of Triple DES get the
    /// right parity.
    package static func derive(
        _ purpose: Purpose,
        from secret: borrowing Secret,
        for cipher: SessionCipher
    ) throws(CryptoError) -> Secret {
        let digest: DigestAlgorithm =
            switch cipher {
            case .tripleDES, .aes128: .sha1
            case .aes192, .aes256: .sha256
            }
        let hash = try digest.hash(secret, suffix: [0, 0, 0, purpose.rawValue])
        return hash.withBytes { bytes in
            Secret(count: cipher.keyLength) { key in
                key.copyBytes(from: bytes.prefix(cipher.keyLength))
                if cipher == .tripleDES { TripleDES.adjustParity(key) }
            }
        }
    }
}
