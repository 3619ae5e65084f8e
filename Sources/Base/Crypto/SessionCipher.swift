// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A cipher with its length of key, as the object identifiers of PACE and chip authentication name it.
/// ICAO 9303-11 9.2; TR-03110-3 A.1.1.1.
package enum SessionCipher: UInt8, Sendable, Hashable, CaseIterable {
    // The raw value is the last number of the object identifiers.
    case tripleDES = 1
    case aes128 = 2
    case aes192 = 3
    case aes256 = 4

    package init(_ aes: AES) {
        self =
            switch aes {
            case .aes128: .aes128
            case .aes192: .aes192
            case .aes256: .aes256
            }
    }

    /// The length of a key in bytes.
    package var keyLength: Int {
        switch self {
        case .tripleDES: TripleDES.keyLength
        case .aes128: AES.aes128.keyLength
        case .aes192: AES.aes192.keyLength
        case .aes256: AES.aes256.keyLength
        }
    }

    package var block: BlockCipher { self == .tripleDES ? .tripleDES : .aes }
}

/// The two block ciphers of secure messaging. The length of a key selects the AES.
package enum BlockCipher: Sendable, Hashable {
    case tripleDES
    case aes

    /// The length of a block and of the send sequence counter in bytes.
    package var blockSize: Int { self == .aes ? AES.blockSize : TripleDES.blockSize }

    /// The initial vector of a protected message: zeros with Triple DES, the encrypted send sequence counter with AES.
    /// ICAO 9303-11 9.8.6.1, 9.8.7.1.
    package func vector(counter: [UInt8], key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        switch self {
        case .aes: try AES.encrypt(counter, key: key)
        case .tripleDES: [UInt8](repeating: 0, count: blockSize)
        }
    }

    /// Encrypts whole blocks with CBC. With Triple DES the vector is zeros.
    package func encrypt(
        _ data: borrowing Secret,
        key: borrowing Secret,
        initialVector: [UInt8]? = nil
    ) throws(CryptoError) -> [UInt8] {
        switch self {
        case .aes: try AES.encrypt(data, key: key, initialVector: initialVector ?? AES.zeroVector)
        case .tripleDES: try TripleDES.encrypt(data, key: key)
        }
    }

    /// Decrypts whole blocks with CBC. With Triple DES the vector is zeros.
    package func decrypt(
        _ data: [UInt8],
        key: borrowing Secret,
        initialVector: [UInt8]? = nil
    ) throws(CryptoError) -> Secret {
        switch self {
        case .aes: try AES.decrypt(data, key: key, initialVector: initialVector ?? AES.zeroVector)
        case .tripleDES: try TripleDES.decrypt(data, key: key)
        }
    }

    /// Computes the MAC of a protected message, which consists of whole blocks: 8 bytes. ICAO 9303-11 9.8.6.2, 9.8.7.2.
    package func messageTag(_ blocks: [UInt8], key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        switch self {
        case .aes: try CMAC.truncatedTag(blocks, key: key)
        case .tripleDES: try TripleDES.retailMAC(blocks, key: key)
        }
    }

    /// Computes the MAC of bytes of any length, such as a token: 8 bytes. The retail MAC pads them first.
    package func tag(_ message: [UInt8], key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        switch self {
        case .aes: try CMAC.truncatedTag(message, key: key)
        case .tripleDES:
            try TripleDES.retailMAC(Padding.added(to: message, blockSize: blockSize), key: key)
        }
    }
}

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
