// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import Secp256k1
import Secrets

/// The master key of a card, with its two chain codes.
struct CardWallet: ~Copyable {
    private let master: ExtendedPrivateKey
    let keyUID: [UInt8]

    init(seed: borrowing Secret) throws(CryptoError) {
        let master = try ExtendedPrivateKey(seed: seed)
        keyUID = try DigestAlgorithm.sha256.hash(master.key.publicKey.uncompressed)
        self.master = master
    }

    /// Derives a key and its chain code.
    ///
    /// In the duress wallet the master chain code is replaced by its SHA-256.
    func derive(_ path: DerivationPath, duress: Bool) throws(CryptoError) -> ExtendedPrivateKey {
        let code = duress ? try DigestAlgorithm.sha256.hash(master.chainCode) : master.chainCode.clone()
        return try ExtendedPrivateKey(try master.key.clone(), chainCode: code).derive(path)
    }
}
