// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import HDWallet
package import Secp256k1
package import Secrets

/// What BIP-32 derives from the seed of a wallet, to compare it with what a card derives.
package struct KeycardWallet: Sendable, Equatable {
    /// SHA-256 of the master public key.
    package let keyUID: [UInt8]
    /// The public key m/44'/60'/0'/0/0.
    package let firstKey: PublicKey

    /// Derives the keys of a seed of 64 bytes.
    package init(seed: borrowing Secret) throws(KeycardError) {
        do throws(CryptoError) {
            let master = try ExtendedPrivateKey(seed: seed)
            keyUID = try master.keyUID
            firstKey = try master.derive(.firstEthereumAddress).key.publicKey
        } catch {
            throw .crypto(error)
        }
    }

    /// Derives the keys of words.
    package init(_ mnemonic: borrowing Mnemonic) throws(KeycardError) {
        try self.init(seed: try crypto { () throws(CryptoError) in try mnemonic.seed() })
    }
}
