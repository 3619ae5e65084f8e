// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// The question before something is deleted for good.
enum Confirmation {
    static let option = OptionSpec(.yes, "do not ask before something is deleted")

    /// Asks until the user has decided. With `--yes` nothing is asked. `text` says what happens, and `notDone` what an
    /// early end means, such as `the key was not deleted`. Returns when the user has agreed.
    static func ask(
        _ source: any AnswerSource,
        _ invocation: Invocation,
        _ text: String,
        notDone: String,
        say: (String) -> Void
    ) async throws {
        guard !invocation.has(.yes) else { return }
        if let answer = await source.choose(Choice(text: text.printable, yes: tr("Delete"))) {
            switch answer {
            case .yes: return
            case .other, .no: throw CommandFailure(notDone, hint: tr("to go on, choose Delete"))
            case .cancelled: throw CommandFailure(tr("cancelled: \(notDone)"), hint: tr("to go on, choose Delete"))
            case .failed: throw CommandFailure.noPinentry
            case .tooLong: throw CommandFailure.tooLongForWindows
            }
        }
        say(text.printable)
        while true {
            switch await source.ask(tr("Delete? [y, n] ")) {
            case .text(let answer):
                if answer.isYes { return }
                if answer.isNo { throw CommandFailure(notDone, hint: tr("to go on, answer y")) }
                say(tr("Type y or n."))
            case .noTerminal, .noPinentry, .secret, .confirmed, .malformed, .repeated:
                throw CommandFailure(
                    usage: tr("there is no terminal to ask on: \(notDone)"),
                    hint: tr("run badgectl in a terminal, or use --yes if you are sure")
                )
            case .ended, .cancelled: throw CommandFailure(tr("cancelled: \(notDone)"), hint: tr("to go on, answer y"))
            }
        }
    }
}

extension String {
    /// Whether an answer of the user means yes, in English or in German.
    var isYes: Bool { ["y", "yes", "j", "ja"].contains(asAnswer) }
    /// Whether an answer of the user means no, in English or in German.
    var isNo: Bool { ["n", "no", "nein"].contains(asAnswer) }

    /// The text as it is compared with answers: in lower case and without blanks.
    var asAnswer: String { lowercased().filter { !$0.isWhitespace } }
}

extension Invocation {
    /// Asks on the terminal before something is deleted.
    func confirm(_ text: String, notDone: String) async throws {
        let terminal = TerminalSource()
        try await Confirmation.ask(terminal ?? NoSource(), self, text, notDone: notDone) { text in
            if let terminal { terminal.say(text) } else { Output.note(text) }
        }
    }
}

extension CommandLineUser {
    /// Asks during a workflow before something is deleted.
    func confirm(_ text: String) async throws {
        do {
            try await Confirmation.ask(source, invocation, text, notDone: notDone) { say($0) }
        } catch {
            throw ending ?? error
        }
    }
}
