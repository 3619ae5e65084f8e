// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Store
import Text

/// A new key pair of P-256.
struct KeyPair: Sendable {
    /// 65 bytes, uncompressed.
    let publicKey: [UInt8]
    /// What is stored: the scalar, or the blob in which the TPM has encrypted the private part.
    let secret: SecretBox
    let protection: KeyRecord.Protection

    static func make(_ tpm: TPM) async throws(Failure) -> KeyPair {
        let key = try await tpm.makeKey()
        return KeyPair(publicKey: key.publicKey, secret: SecretBox(Secret(key.blob)), protection: .tpm)
    }

    static func software() throws(Failure) -> KeyPair {
        return try translating(Failure.crypto) { () throws(CryptoError) in
            while true {
                let scalar = try Random.secret(Curve.secp256r1.scalarLength)
                // A number that is not below the order of the curve is drawn again.
                guard let key = try? ECPrivateKey(scalar, on: Curve.secp256r1.group) else { continue }
                return KeyPair(
                    publicKey: key.publicKey.uncompressed,
                    secret: SecretBox(scalar),
                    protection: .software
                )
            }
        }
    }
}

/// A key pair whose private part is in wiped memory.
final class SoftwareKey: CredentialKey {
    let publicKey: [UInt8]
    private let scalar: Secret

    init(_ scalar: consuming Secret, publicKey: [UInt8]) {
        self.publicKey = publicKey
        self.scalar = scalar
    }

    @concurrent func sign(digest: [UInt8]) async throws(Failure) -> [UInt8] {
        try translating(Failure.crypto) { () throws(CryptoError) in
            guard digest.count == DigestAlgorithm.sha256.count else { throw .invalidLength }
            let key = try ECPrivateKey(scalar, on: Curve.secp256r1.group)
            // If the stored private part belongs to another key, the key must not sign.
            guard key.publicKey.uncompressed == publicKey else { throw .invalidKey }
            return try ECDSA.sign(digest: digest, with: key)
        }
    }
}

/// A key pair whose private part only a TPM can use.
struct TPMKey: CredentialKey {
    let key: TPM.Key
    /// The TPM of the key; nil if badged must not use one.
    let tpm: TPM?

    var publicKey: [UInt8] { key.publicKey }

    func sign(digest: [UInt8]) async throws(Failure) -> [UInt8] {
        guard let tpm else { throw .tpm(.notAllowed) }
        return try await tpm.sign(digest: digest, with: key)
    }
}
