// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import HDWallet
import Server
import Text

/// SHOW_PAPER_WALLET shows the words of a new wallet, once. ACCEPT answers.
///
/// The prompt stays open while the card is away, because writing the words down takes minutes.
struct PaperWalletPrompt: AcknowledgedPrompt {
    let words: PaperWallet
    let userID: String

    var name: StaticString { "SHOW_PAPER_WALLET" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, isSecret: true) { object in
            object.member("userId", userID)
            object.array("mnemonics", 0..<words.mnemonic.count) { list, position in
                list.ascii(words.mnemonic.word(at: position) ?? [])
            }
        }
    }
}

/// ENTER_WORDS with `positions` asks for some of the words that were shown. SET_WORDS answers.
struct WordsCheckPrompt: Prompt {
    typealias Answer = Void

    let words: PaperWallet
    let positions: [Int]
    let userID: String

    var name: StaticString { "ENTER_WORDS" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, error: error) { object in
            object.member("userId", userID)
            object.member("positions", positions)
        }
    }

    func answer(in call: Call) throws(Failure) {
        guard call.name == "SET_WORDS" else { throw .badState }
        guard words.mnemonic.matches(try call.words(), at: positions) else {
            throw Failure(.wrongArgument, "The words do not match")
        }
    }
}

/// ENTER_WORDS with `count` asks for all words of a wallet. SET_WORDS answers.
struct WordsPrompt: Prompt {
    /// Words that a user has typed.
    final class Typed: Sendable {
        let mnemonic: Mnemonic

        init(_ mnemonic: consuming Mnemonic) { self.mnemonic = mnemonic }
    }

    typealias Answer = Typed

    let count: Int
    let userID: String
    /// What was wrong with the last words.
    var error: Phrase?

    static let commands = [CommandSpec(answering: "SET_WORDS")]

    var name: StaticString { "ENTER_WORDS" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, error: error ?? self.error) { object in
            object.member("userId", userID)
            object.member("count", count)
        }
    }

    func answer(in call: Call) throws(Failure) -> Typed {
        guard call.name == "SET_WORDS" else { throw .badState }
        let typed = try call.words()
        guard Mnemonic.count(of: typed) == count else {
            throw Failure(.wrongArgument, "You must provide \(count) words")
        }
        return try translating(
            { (error: Malformed) in
                Failure(.wrongArgument, Phrase(verbatim: error.text.prefix(1).uppercased() + error.text.dropFirst()))
            },
            Typed(try Mnemonic(words: typed))
        )
    }
}

extension Call {
    /// Takes `value` of SET_WORDS.
    fileprivate func words() throws(Failure) -> Secret {
        try arguments.sdkSecret { (typed: consuming Secret) throws(Failure) in typed }
    }
}

/// ENTER_PASSPHRASE asks for the passphrase of BIP-39 that belongs to the words. SET_PASSPHRASE answers.
///
/// badged does not normalise text, so that the passphrase is never a `String`: it is ASCII, which NFKD does not change.
struct PassphrasePrompt: Prompt {
    typealias Answer = SecretBox

    let userID: String

    static let commands = [CommandSpec(answering: "SET_PASSPHRASE")]

    var name: StaticString { "ENTER_PASSPHRASE" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, error: error) { $0.member("userId", userID) }
    }

    func answer(in call: Call) throws(Failure) -> SecretBox {
        guard call.name == "SET_PASSPHRASE" else { throw .badState }
        return try call.secret(.text(Mnemonic.passphraseCounts))
    }
}

/// SHOW_PUK shows the PUK that badged has generated for a new card, once. ACCEPT answers.
struct PUKPrompt: AcknowledgedPrompt, CardPrompt {
    let puk: KeptDigits
    let lease: CardLease
    let userID: String

    var name: StaticString { "SHOW_PUK" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, isSecret: true) { object in
            object.member("userId", userID)
            object.key("puk")
            puk.digits.withBytes { object.ascii($0) }
        }
    }
}
