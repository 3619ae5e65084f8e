// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import Keycard
import Text

/// The words of a wallet, and its passphrase, during one workflow. They are wiped with the last reference.
final class PaperWallet: Sendable {
    let mnemonic: Mnemonic
    /// The seed of BIP-39: the words, and the passphrase if there is one.
    let seed: Secret
    /// What BIP-32 derives from the seed.
    let wallet: KeycardWallet

    /// Derives the keys of words. Runs off the loop, because the derivation takes milliseconds.
    @concurrent static func derived(
        from mnemonic: consuming Mnemonic,
        passphrase: SecretBox? = nil
    ) async throws(KeycardError) -> PaperWallet {
        try PaperWallet(mnemonic, passphrase?.take() ?? Secret([]))
    }

    /// Derives the keys of words that a user has typed.
    @concurrent static func derived(
        from typed: WordsPrompt.Typed,
        passphrase: SecretBox?
    ) async throws(Failure) -> PaperWallet {
        try await awaiting(orThrow: Self.failure, await derived(from: typed.mnemonic.clone(), passphrase: passphrase))
    }

    /// Derives the keys of the same words with a passphrase.
    @concurrent func adding(passphrase: SecretBox) async throws(Failure) -> PaperWallet {
        try await awaiting(orThrow: Self.failure, await Self.derived(from: mnemonic.clone(), passphrase: passphrase))
    }

    private static func failure(_ error: KeycardError) -> Failure { Failure(error, at: "BIP-32") }

    private init(_ mnemonic: consuming Mnemonic, _ passphrase: consuming Secret) throws(KeycardError) {
        do throws(CryptoError) {
            seed = try mnemonic.seed(passphrase: passphrase)
        } catch {
            throw .crypto(error)
        }
        wallet = try KeycardWallet(seed: seed)
        self.mnemonic = mnemonic
    }

    /// Draws `count` different positions, in ascending order.
    func randomPositions(_ count: Int) -> [Int] {
        Array(1...mnemonic.count).shuffled().prefix(count).sorted()
    }
}
