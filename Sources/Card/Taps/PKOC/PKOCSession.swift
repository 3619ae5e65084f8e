// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// The encryption of PKOC over Bluetooth: the key that both sides compute, and the counter of messages in one direction.
/// PKOC BLE 2.0.1, ECDHE flow.
package struct PKOCSession: ~Copyable {
    private let key: Secret
    /// The number of the next message, from 1 on.
    private var counter: UInt32 = 1

    private static let cipher = AuthenticatedAES.ccm(tagCount: 16)

    /// The key is the SHA-256 of the x coordinate of the shared point.
    /// - Throws: `CryptoError.invalidPoint` for a point of another curve.
    package init(own: borrowing ECPrivateKey, peer: ECPublicKey) throws(CryptoError) {
        key = try DigestAlgorithm.sha256.hash(try own.sharedSecret(with: peer))
    }

    /// Encrypts the next message, of at least one byte. A tag of 16 bytes follows the ciphertext.
    /// - Throws: `CryptoError.invalidLength` when the counter is used up.
    package mutating func seal(_ message: borrowing Secret) throws(CryptoError) -> [UInt8] {
        try Self.cipher.seal(message, key: key, nonce: try nextNonce())
    }

    /// Decrypts the next message; nil if the tag is wrong.
    package mutating func open(_ sealed: [UInt8]) throws(CryptoError) -> Secret? {
        try Self.cipher.open(sealed, key: key, nonce: try nextNonce())
    }

    /// 00000000 00000001 and the counter, 12 bytes.
    private mutating func nextNonce() throws(CryptoError) -> [UInt8] {
        guard counter < .max else { throw .invalidLength }
        defer { counter += 1 }
        return [0, 0, 0, 0, 0, 0, 0, 1] + withUnsafeBytes(of: counter.bigEndian, Array.init)
    }
}

/// What both sides of the ECDHE flow sign: T.
package struct PKOCTranscript: Sendable, Equatable {
    /// 96 bytes: site, location, X of the ephemeral key of the credential, X of that of the reader.
    package let bytes: [UInt8]

    /// Nil unless `site` and `location` have 16 bytes each.
    package init?(site: [UInt8], location: [UInt8], credential: ECPublicKey, reader: ECPublicKey) {
        guard site.count == 16, location.count == 16, credential.curve == .secp256r1, reader.curve == .secp256r1 else {
            return nil
        }
        bytes = site + location + credential.compressed + reader.compressed
    }
}
