// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import HDWallet
import Secrets
import Server
import Text
import Wire

/// SHOW_PAPER_WALLET shows the words of a new wallet, once. ACCEPT answers.
///
/// The prompt stays open while the card is away, because writing the words down takes minutes.
struct PaperWalletPrompt: AcknowledgedPrompt {
    let words: PaperWallet
    let userID: String

    var name: String { PaperWalletMessage.name.description }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        PaperWalletMessage(words: words, userID: userID, question: number)
    }
}

struct PaperWalletMessage: Message {
    static let name: StaticString = "SHOW_PAPER_WALLET"
    static let isSecret = true
    let words: PaperWallet
    let userID: String
    let question: Int

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("userId", userID)
        object.member("question", question)
        object.array("mnemonics", 0..<words.mnemonic.count) { list, position in
            list.ascii(words.mnemonic.word(at: position) ?? [])
        }
    }
}

/// ENTER_WORDS with `positions` asks for some of the words that were shown. SET_WORDS answers.
struct WordsCheckPrompt: Prompt {
    typealias Answer = Void

    let words: PaperWallet
    let positions: [Int]
    let userID: String

    var name: String { EnterWordsMessage.name.description }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        EnterWordsMessage(userID: userID, positions: positions, count: nil, question: number, error: error)
    }

    static func answer(
        _ open: OpenPrompt<WordsCheckPrompt>,
        with command: Command,
        named name: String
    ) -> CommandOutcome {
        guard name == "SET_WORDS", open.isMeant(by: command) else { return .badState }
        guard let typed = open.words(of: command) else { return .answered }
        if open.prompt.words.matches(typed, at: open.prompt.positions) {
            open.answer(())
        } else {
            open.refuse(command, "The words do not match")
        }
        return .answered
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
    var error: String?

    static let commands = [CommandSpec(answering: "SET_WORDS")]

    var name: String { EnterWordsMessage.name.description }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        EnterWordsMessage(userID: userID, positions: nil, count: count, question: number, error: error ?? self.error)
    }

    static func answer(
        _ open: OpenPrompt<WordsPrompt>,
        with command: Command,
        named name: String
    ) -> CommandOutcome {
        guard name == "SET_WORDS", open.isMeant(by: command) else { return .badState }
        guard let typed = open.words(of: command) else { return .answered }
        do throws(MnemonicError) {
            let mnemonic = try Mnemonic(words: typed)
            guard mnemonic.count == open.prompt.count else { throw .wrongCount(mnemonic.count) }
            open.answer(Typed(mnemonic))
        } catch {
            open.refuse(command, text(error, open.prompt.count))
        }
        return .answered
    }

    private static func text(_ error: MnemonicError, _ count: Int) -> String {
        switch error {
        case .wrongCount: "You must provide \(count) words"
        case .unknownWord(let position): "Word \(position) is not in the list"
        case .wrongChecksum: "The checksum of the words is wrong"
        case .crypto: "The words could not be checked"
        }
    }
}

extension OpenPrompt {
    /// Takes `value` of SET_WORDS.
    /// - Returns: nil if the command was refused.
    fileprivate func words(of command: Command) -> Secret? {
        switch command.secret("value") {
        case .missing: refuse(command, "Value cannot be undefined")
        case .invalid: refuse(command, "Invalid value")
        case .value(let typed): return typed
        }
        return nil
    }
}

struct EnterWordsMessage: Message {
    static let name: StaticString = "ENTER_WORDS"
    let userID: String
    let positions: [Int]?
    let count: Int?
    let question: Int
    let error: String?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("userId", userID)
        if let positions { object.member("positions", positions) }
        if let count { object.member("count", count) }
        object.member("question", question)
    }
}

/// SHOW_PUK shows the PUK that badged has generated for a new card, once. ACCEPT answers.
struct PUKPrompt: AcknowledgedPrompt {
    /// Twelve digits.
    final class Drawn: Sendable {
        let digits: Secret

        init(_ digits: consuming Secret) { self.digits = digits }
    }

    let puk: Drawn
    let lease: CardLease
    let userID: String

    var name: String { PUKMessage.name.description }
    var isCurrent: Bool { lease.isCurrent }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        PUKMessage(puk: puk, userID: userID, question: number)
    }
}

struct PUKMessage: Message {
    static let name: StaticString = "SHOW_PUK"
    static let isSecret = true
    let puk: PUKPrompt.Drawn
    let userID: String
    let question: Int

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("userId", userID)
        object.member("question", question)
        object.key("puk")
        puk.digits.withBytes { object.ascii($0) }
    }
}
