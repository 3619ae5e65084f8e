// SPDX-License-Identifier: GPL-3.0-or-later
import Credentials
import Crypto
import Secrets

/// A key pair whose private part is in wiped memory.
final class SoftwareKey: CredentialKey {
    let publicKey: [UInt8]
    private let scalar: Secret

    init(_ scalar: consuming Secret, publicKey: [UInt8]) {
        self.publicKey = publicKey
        self.scalar = scalar
    }

    @concurrent func sign(digest: [UInt8]) async throws -> [UInt8] {
        guard digest.count == DigestAlgorithm.sha256.count else { throw CryptoError.invalidLength }
        let key = try ECPrivateKey(scalar, on: Curve.secp256r1.group)
        // If the stored private part belongs to another key, the key must not sign.
        guard key.publicKey.uncompressed == publicKey else { throw CryptoError.invalidKey }
        return try ECDSA.sign(digest: digest, with: key)
    }
}
