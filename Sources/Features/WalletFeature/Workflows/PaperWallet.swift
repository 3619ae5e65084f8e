// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import Keycard
import Secrets
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
        try translating({ Failure($0, at: "BIP-32") }) { () throws(KeycardError) in
            try PaperWallet(typed.mnemonic.clone())
        }
    }

    private init(_ mnemonic: consuming Mnemonic) throws(KeycardError) {
        wallet = try KeycardWallet(mnemonic)
        self.mnemonic = mnemonic
    }

    /// Whether typed text has exactly the words at these positions, which count from 1. Case and white space do not
    /// matter.
    func matches(_ typed: borrowing Secret, at positions: [Int]) -> Bool {
        typed.withBytes { bytes in
            let words = bytes.split { $0 == 0x20 || (0x09...0x0D).contains($0) }
            guard words.count == positions.count else { return false }
            return zip(words, positions).allSatisfy { word, position in
                mnemonic.word(at: position - 1)?.elementsEqual(word.lazy.map { Self.lower($0) }) ?? false
            }
        }
    }

    private static func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    /// Draws `count` different positions, in ascending order.
    func randomPositions(_ count: Int) -> [Int] {
        Array(1...mnemonic.count).shuffled().prefix(count).sorted()
    }
}
