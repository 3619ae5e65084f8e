// SPDX-License-Identifier: GPL-3.0-or-later
import Credentials
import Crypto
import TPM

/// A key pair whose private part only a TPM can use.
struct TPMKey: CredentialKey {
    let key: TPM.Key
    /// The TPM of the key; nil if badged must not use one.
    let tpm: TPM?

    var publicKey: [UInt8] { key.publicKey }

    func sign(digest: [UInt8]) async throws -> [UInt8] {
        guard digest.count == DigestAlgorithm.sha256.count else { throw CryptoError.invalidLength }
        do throws(TPMError) {
            guard let tpm else { throw .notAllowed }
            return try await tpm.sign(digest: digest, with: key)
        } catch {
            throw VaultError.tpm(error)
        }
    }
}
