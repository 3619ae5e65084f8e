// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Secrets

/// What became of a question.
enum Reply {
    /// Well-formed.
    case secret(SecretBox)
    /// Return was pressed.
    case confirmed
    /// An answer that is no secret.
    case text(String)
    /// No more input: Ctrl-D, or the end of standard input.
    case ended
    /// The question was called off.
    case calledOff
    /// A line of standard input that cannot be the answer.
    case malformed(line: Int)
    case noTerminal
}

/// Who is asked for PIN, CAN, PUK and consent. A cancelled task calls its question off.
protocol SecretSource: Sendable {
    func ask(_ kind: SecretKind) async -> Reply
    func askToGoOn() async -> Reply
    /// May the service have what it asks for?
    func askForConsent() async -> Reply
}

extension SecretKind {
    /// Digits that it may have.
    var lengths: ClosedRange<Int> {
        switch self {
        case .pin: 5...6
        case .can, .newPIN: 6...6
        case .puk: 10...10
        }
    }

    var words: String {
        switch self {
        case .pin: "PIN"
        case .can: "CAN"
        case .newPIN: "new PIN"
        case .puk: "PUK"
        }
    }

    /// `5 or 6 digits`
    var form: String {
        let (least, most) = (lengths.lowerBound, lengths.upperBound)
        return least == most ? "\(least) digits" : "\(least) or \(most) digits"
    }

    func accepts(_ secret: borrowing Secret) -> Bool {
        secret.withBytes { bytes in
            lengths.contains(bytes.count) && bytes.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        }
    }
}

/// The person at the terminal: no echo, wrong forms are asked again, a new PIN is asked twice.
final class TerminalSource: SecretSource {
    private let input: LineSource
    /// Where questions are written.
    private let descriptor: Int32

    /// The controlling terminal, else standard input when that is a terminal; nil without either.
    init?() {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        let descriptor = terminal >= 0 ? terminal : STDIN_FILENO
        guard isatty(descriptor) == 1, let input = LineSource(descriptor) else { return nil }
        (self.descriptor, self.input) = (descriptor, input)
    }

    private func line(_ prompt: String, shows: Bool = false) async -> LineSource.Line {
        await input.next { [descriptor] in
            Terminal.ask(prompt, on: descriptor, shows: shows)
        } end: {
            Terminal.restore()
        }
    }

    private func say(_ text: String) { Output.write(text + "\n", to: descriptor) }

    /// One well-formed value.
    private func value(_ prompt: String, _ kind: SecretKind) async -> Reply {
        while true {
            switch await line(prompt) {
            case .text(let box):
                guard let secret = box.take() else { continue }
                if kind.accepts(secret) { return .secret(SecretBox(secret)) }
            case .tooLong: break
            case .ended: return .ended
            case .calledOff: return .calledOff
            }
            say("The \(kind.words) has \(kind.form).")
        }
    }

    func ask(_ kind: SecretKind) async -> Reply {
        while true {
            let first = await value("\(kind.words.prefix(1).uppercased() + kind.words.dropFirst()): ", kind)
            guard kind == .newPIN, case .secret(let firstBox) = first else { return first }
            let second = await value("The same again: ", kind)
            guard case .secret(let secondBox) = second else { return second }
            guard let one = firstBox.take(), let other = secondBox.take() else { continue }
            let isSame = one.withBytes { one in other.withBytes { one.elementsEqual($0) } }
            if isSame { return .secret(SecretBox(one)) }
            say("The two are not the same.")
        }
    }

    func askToGoOn() async -> Reply {
        switch await line("Press Return to go on: ") {
        case .text, .tooLong: .confirmed
        case .ended: .ended
        case .calledOff: .calledOff
        }
    }

    func askForConsent() async -> Reply {
        switch await line("Agree? (y, n, or numbers to tick or untick) ", shows: true) {
        case .text(let box): .text(box.take()?.withBytes { String(decoding: $0, as: UTF8.self) } ?? "")
        case .tooLong: .text("")
        case .ended: .ended
        case .calledOff: .calledOff
        }
    }
}

/// Standard input, one value per line in the order of the questions, a new PIN once: for scripts.
actor StreamSource: SecretSource {
    private let input: LineSource
    private var lines = 0

    init?() {
        guard let input = LineSource(STDIN_FILENO) else { return nil }
        self.input = input
    }

    func ask(_ kind: SecretKind) async -> Reply {
        let line = await input.next()
        lines += 1
        switch line {
        case .text(let box):
            guard let secret = box.take(), kind.accepts(secret) else { return .malformed(line: lines) }
            return .secret(SecretBox(secret))
        case .tooLong: return .malformed(line: lines)
        case .ended: return .ended
        case .calledOff: return .calledOff
        }
    }

    /// A script sees no card slip, and cannot push it back.
    func askToGoOn() async -> Reply { .noTerminal }

    /// Standard input holds the values; consent is `--yes`.
    func askForConsent() async -> Reply { .noTerminal }
}

/// Neither terminal nor `--pin-stdin`.
struct NoSource: SecretSource {
    func ask(_ kind: SecretKind) async -> Reply { .noTerminal }
    func askToGoOn() async -> Reply { .noTerminal }
    func askForConsent() async -> Reply { .noTerminal }
}
