// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import Keycard
import Text

/// The words of a wallet during one workflow. They are wiped with the last reference.
final class PaperWallet: Sendable {
    let mnemonic: Mnemonic
    /// What BIP-32 derives from the words.
    let wallet: KeycardWallet

    /// Derives the keys of the words. Runs off the loop, because the derivation takes milliseconds.
    @concurrent static func derived(from mnemonic: consuming Mnemonic) async throws(KeycardError) -> PaperWallet {
        try PaperWallet(mnemonic)
    }

    /// Derives the keys of words that a user has typed.
    @concurrent static func derived(from typed: WordsPrompt.Typed) async throws(Failure) -> PaperWallet {
        try translating({ Failure($0, at: "BIP-32") }, PaperWallet(typed.mnemonic.clone()))
    }

    private init(_ mnemonic: consuming Mnemonic) throws(KeycardError) {
        wallet = try KeycardWallet(mnemonic)
        self.mnemonic = mnemonic
    }

    /// Draws `count` different positions, in ascending order.
    func randomPositions(_ count: Int) -> [Int] {
        Array(1...mnemonic.count).shuffled().prefix(count).sorted()
    }
}
