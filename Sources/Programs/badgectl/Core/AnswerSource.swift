// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

struct TypedSecretForm: Sendable {
    enum Content: Sendable, Hashable {
        case digits(ClosedRange<Int>)
        /// Printable ASCII characters.
        case characters(ClosedRange<Int>)
        /// Words with spaces between them.
        case words(Int)
    }

    /// Such as `new PIN`.
    var name: String
    var content: Content
    /// Whether the user types the secret twice, because a typing error would be hard to undo.
    var isTypedTwice = false
    /// Whether the value is a further line of the last one.
    var isContinuation = false
    /// Who gets what this secret opens; nil: nobody but the card. A window shows it, where the consent is no longer
    /// seen.
    var service: String?

    init(name: String, content: Content) { (self.name, self.content) = (name, content) }

    init(name: String, digits: ClosedRange<Int>, isTypedTwice: Bool = false) {
        self.name = name
        content = .digits(digits)
        self.isTypedTwice = isTypedTwice
    }

    /// `5 or 6 digits`.
    var length: String {
        switch content {
        case .digits(let range):
            let (least, most) = (range.lowerBound, range.upperBound)
            return least == most ? tr("\(least) digits") : tr("\(least) or \(most) digits")
        case .characters(let range): return tr("\(range.lowerBound) to \(range.upperBound) ASCII characters")
        case .words(let count): return count == 1 ? tr("1 word") : tr("\(count) words")
        }
    }

    /// What is said after a value of another form.
    var advice: String {
        if case .words = content {
            tr("Type \(length) with spaces between them.")
        } else {
            tr("The \(name) has \(length).").asSentence
        }
    }

    func accepts(_ secret: borrowing Secret) -> Bool {
        secret.withBytes { bytes in
            switch content {
            case .digits(let range):
                range.contains(bytes.count) && bytes.allSatisfy { (0x30...0x39).contains($0) }
            case .characters(let range):
                range.contains(bytes.count) && bytes.allSatisfy { (0x20...0x7E).contains($0) }
            // Each may have its number before it. badged knows the words.
            case .words(let count):
                bytes.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: ",") }
                    .count { part in part.contains { !(0x30...0x39).contains($0) && !".):".utf8.contains($0) } }
                    == count
            }
        }
    }
}

extension TypedSecretForm {
    /// Reads one secret outside of a workflow: from the terminal, or a line of standard input, whose form badged checks.
    /// - Throws: `cancelled` when the user types none, `missing` when standard input has no line.
    func read(cancelled: CommandFailure, missing: CommandFailure) async throws -> SecretBox {
        if isatty(STDIN_FILENO) == 1, let terminal = TerminalSource() {
            if case .secret(let secret) = await terminal.ask(self) { return secret }
            throw cancelled
        }
        if let input = LineSource(STDIN_FILENO), case .text(let secret) = await input.next() { return secret }
        throw missing
    }
}

/// The result of a question.
enum TypedAnswer {
    /// A secret of the right form.
    case secret(SecretBox)
    /// The user pressed Return.
    case confirmed
    /// An answer that is no secret.
    case text(String)
    /// The input has ended: Ctrl-D, or the end of standard input.
    case ended
    /// The question was cancelled.
    case cancelled
    /// This line of standard input cannot be the answer.
    case malformed(line: Int)
    /// A script was asked for a value of this name before.
    case repeated(String)
    case noTerminal
    /// pinentry does not work here.
    case noPinentry
}

/// Asks the user, or reads a script's answers. Cancelling the task cancels the question.
protocol AnswerSource: Sendable {
    /// Begins a dialogue, which ends with the program or with `Console.end`.
    func begin()
    func ask(_ form: TypedSecretForm) async -> TypedAnswer
    /// Waits until the user presses Return.
    func askToContinue() async -> TypedAnswer
    /// Asks for an answer that is no secret.
    func ask(_ prompt: String) async -> TypedAnswer
    /// Asks with buttons; nil: there are none, so `ask` must do.
    func choose(_ choice: Choice) async -> Choice.Answer?
    /// Shows a text that no one else may see, until the user has written it down.
    func reveal(_ text: String) async -> TypedAnswer
}

extension AnswerSource {
    func begin() {}
    func choose(_ choice: Choice) async -> Choice.Answer? { nil }
}

/// The user at the terminal. The terminal shows no secret; a value of the wrong form is asked for again.
final class TerminalSource: AnswerSource {
    private let input: LineSource
    /// The terminal, where questions are written.
    private let descriptor: Int32

    /// Opens the controlling terminal, or else uses standard input if that is a terminal. nil without a terminal.
    init?() {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        let descriptor = terminal >= 0 ? terminal : STDIN_FILENO
        guard isatty(descriptor) == 1, let input = LineSource(descriptor) else { return nil }
        self.descriptor = descriptor
        self.input = input
    }

    /// Begins a dialogue: from now on the terminal shows nothing of what is typed.
    func begin() { Console.begin(on: descriptor, input) }

    private func line(_ prompt: String, echoes: Bool = false) async -> LineSource.Line {
        begin()
        return await input.next { isWanted in
            Console.ask(prompt, echoes: echoes, isOpen: isWanted)
        } end: { hasLine in
            Console.answered(hasLine: hasLine)
        }
    }

    /// Writes a text of the dialogue.
    func say(_ text: String) { Console.say(Layout.wrapped(text, for: descriptor), on: descriptor) }

    /// Asks until the value has the right form.
    private func value(_ prompt: String, _ form: TypedSecretForm) async -> TypedAnswer {
        while true {
            switch await line(prompt) {
            case .text(let box):
                guard let secret = box.take() else { continue }
                if form.accepts(secret) { return .secret(SecretBox(secret)) }
            case .tooLong: break
            case .ended: return .ended
            case .cancelled: return .cancelled
            }
            say(form.advice)
        }
    }

    func ask(_ form: TypedSecretForm) async -> TypedAnswer {
        while true {
            let first = await value(form.name.asSentence + ": ", form)
            guard form.isTypedTwice, case .secret(let firstBox) = first else { return first }
            let second = await value(tr("Repeat the \(form.name): ").asSentence, form)
            guard case .secret(let secondBox) = second else { return second }
            guard let one = firstBox.take(), let other = secondBox.take() else { continue }
            let isSame = one.withBytes { one in other.withBytes { one.elementsEqual($0) } }
            if isSame { return .secret(SecretBox(one)) }
            say(tr("You have typed two different values."))
        }
    }

    func askToContinue() async -> TypedAnswer { await askToContinue(tr("Press Return to continue: ")) }

    private func askToContinue(_ prompt: String) async -> TypedAnswer {
        switch await line(prompt) {
        case .text, .tooLong: .confirmed
        case .ended: .ended
        case .cancelled: .cancelled
        }
    }

    func reveal(_ text: String) async -> TypedAnswer {
        begin()
        say(text)
        let reply = await askToContinue(tr("Press Return when you have written it down: "))
        clear()
        return reply
    }

    /// Removes from the terminal what no one else may see.
    func clear() {
        if Layout.isPlain {
            say(tr("Clear the screen and the scrollback of the terminal now."))
        } else {
            Console.clear(descriptor)
            say(tr("badgectl has cleared the screen. Close this window if it still shows what was above."))
        }
    }

    func ask(_ prompt: String) async -> TypedAnswer {
        switch await line(prompt, echoes: true) {
        case .text(let box): .text(box.take()?.withBytes { String(validating: $0, as: UTF8.self) ?? "" } ?? "")
        case .tooLong: .text("")
        case .ended: .ended
        case .cancelled: .cancelled
        }
    }
}

/// Standard input of a script: one value per line in the order of the questions, a new PIN once. Questions that are no
/// secret go to the terminal, if there is one.
///
/// A script cannot react to a wrong value: its next line was written for the next question. So each value is asked for
/// once.
actor StreamSource: AnswerSource {
    private struct Question: Hashable {
        let name: String
        let content: TypedSecretForm.Content
    }

    private let input: LineSource
    private let terminal: TerminalSource?
    private var lines = 0
    private var asked: Set<Question> = []

    init?(_ terminal: TerminalSource?) {
        guard let input = LineSource(STDIN_FILENO) else { return nil }
        self.input = input
        self.terminal = terminal
        // If standard input is a terminal, the user types the values there.
        if isatty(STDIN_FILENO) == 1 { Console.begin(on: STDIN_FILENO, input) }
    }

    func ask(_ form: TypedSecretForm) async -> TypedAnswer {
        let question = Question(name: form.name, content: form.content)
        guard form.isContinuation || asked.insert(question).inserted else { return .repeated(form.name) }
        let line = await input.next()
        lines += 1
        switch line {
        case .text(let box):
            guard let secret = box.take(), form.accepts(secret) else { return .malformed(line: lines) }
            return .secret(SecretBox(secret))
        case .tooLong: return .malformed(line: lines)
        case .ended: return .ended
        case .cancelled: return .cancelled
        }
    }

    func askToContinue() async -> TypedAnswer { await terminal?.askToContinue() ?? .noTerminal }

    func ask(_ prompt: String) async -> TypedAnswer { await terminal?.ask(prompt) ?? .noTerminal }

    func reveal(_ text: String) async -> TypedAnswer { await terminal?.reveal(text) ?? .noTerminal }
}

/// No answers: there is neither a terminal nor `--pin-stdin`.
struct NoSource: AnswerSource {
    func ask(_ form: TypedSecretForm) async -> TypedAnswer { .noTerminal }
    func askToContinue() async -> TypedAnswer { .noTerminal }
    func ask(_ prompt: String) async -> TypedAnswer { .noTerminal }
    func reveal(_ text: String) async -> TypedAnswer { .noTerminal }
}
