// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Secrets
import TPM

/// A new key pair of P-256.
struct KeyPair: Sendable {
    /// 65 bytes, uncompressed.
    let publicKey: [UInt8]
    /// What is stored: the scalar, or the blob in which the TPM has encrypted the private part.
    let secret: SecretBox
    let protection: KeyRecord.Protection

    /// Makes a key pair in a TPM.
    static func make(_ tpm: TPM) async throws(VaultError) -> KeyPair {
        do throws(TPMError) {
            let key = try await tpm.makeKey()
            return KeyPair(publicKey: key.publicKey, secret: SecretBox(Secret(key.blob)), protection: .tpm)
        } catch {
            throw .tpm(error)
        }
    }

    static func software() throws(VaultError) -> KeyPair {
        do throws(CryptoError) {
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
        } catch {
            throw .library("\(error)")
        }
    }
}
