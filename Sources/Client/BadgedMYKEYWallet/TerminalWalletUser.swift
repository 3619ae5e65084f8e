// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
import Dispatch
import Glibc
public import Text

/// A user at the terminal of the process: reads the request, agrees with `y`, and types the PIN without echo.
///
/// Without a terminal nothing is agreed to. An app with a window has a `WalletUser` of its own.
public final class TerminalWalletUser: WalletUser {
    /// Questions block, so they have a thread of their own. One is asked after the other.
    private let queue = DispatchQueue(label: "wallet terminal")
    private let path: String

    public init() { path = "/dev/tty" }

    public func agree(to request: WalletRequest) async -> Bool {
        let width = request.facts.map(\.name.count).max() ?? 0
        var lines = ["Sign this with the card?"]
        if let error = request.error { lines.append(Self.printable(error)) }
        lines += request.facts.map { fact in
            let space = String(repeating: " ", count: width - fact.name.count + 2)
            return "  \(Self.printable(fact.name))\(space)\(Self.printable(fact.text))"
        }
        let question = lines.joined(separator: "\n") + "\nAgree? [y/N] "
        let answer = await ask(question, echoes: true)?.take()
        return answer?.withBytes { $0.elementsEqual("y".utf8) || $0.elementsEqual("yes".utf8) } ?? false
    }

    public func answer(_ question: SecretQuestion) async -> SecretBox? {
        var lines: [String] = []
        if let error = question.error {
            lines.append(Self.printable(question.wasTried ? "\(error)." : "Not sent to the card: \(error)."))
        }
        if let last = question.last, last.outcome == .wrong { lines.append("That \(name(last.kind)) was wrong.") }
        if let left = question.triesLeft, question.kind == .pin || question.kind == .puk {
            lines.append(left == 1 ? "1 try is left." : "\(left) tries are left.")
        }
        let prompt = "\(name(question.kind)): "
        guard let first = await ask((lines + [prompt]).joined(separator: "\n"), echoes: false) else { return nil }
        guard [.newPIN, .newPUK, .duressPIN].contains(question.kind) else { return first }
        // The user types the secret twice, because a typing error would be hard to undo.
        guard let second = await ask("Repeat the \(prompt)", echoes: false)?.take(), let typed = first.take() else {
            return nil
        }
        let isSame = typed.withBytes { one in second.withBytes { one.elementsEqual($0) } }
        if isSame { return SecretBox(typed) }
        _ = await say("You have typed two different values.")
        return await answer(question)
    }

    public func insertCard(error: String?, reader: String?) async {
        let place = reader.map { "\($0): " } ?? ""
        await say(Self.printable(place + (error ?? "Put the wallet card on the reader.")))
    }

    private func name(_ kind: SecretKind) -> String {
        switch kind {
        case .pin: "PIN"
        case .newPIN: "new PIN"
        case .puk: "PUK"
        case .newPUK: "new PUK"
        case .duressPIN: "duress PIN"
        case .can: "CAN"
        case .pairingPassword: "pairing password"
        }
    }

    // MARK: The terminal

    @discardableResult
    private func say(_ text: String) async -> Bool {
        await withCheckedContinuation { continuation in
            queue.async { [path] in
                guard let terminal = Console(path) else { return continuation.resume(returning: false) }
                terminal.write(text + "\n")
                continuation.resume(returning: true)
            }
        }
    }

    /// Asks, and reads a line. nil without a terminal, at the end of the input, or when the task is cancelled.
    private func ask(_ question: String, echoes: Bool) async -> SecretBox? {
        guard let wake = WakePipe() else { return nil }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { [path] in
                    continuation.resume(returning: Console(path)?.ask(question, echoes: echoes, wake: wake))
                }
            }
        } onCancel: {
            wake.wake()
        }
    }

    /// The text in one line without control characters, so that an app can neither control the terminal nor write lines
    /// of its own.
    static func printable(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                out += "\\u{\(String(scalar.value, radix: 16))}"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}

/// Ends a wait for input.
private final class WakePipe: Sendable {
    let read: Int32
    private let end: Int32

    init?() {
        var ends: [Int32] = [-1, -1]
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue
        guard socketpair(AF_UNIX, Int32(type), 0, &ends) == 0 else { return nil }
        read = ends[0]
        end = ends[1]
    }

    deinit {
        close(read)
        close(end)
    }

    func wake() {
        var byte: UInt8 = 0
        _ = Glibc.write(end, &byte, 1)
    }

    var isAwake: Bool {
        var wait = pollfd(fd: read, events: Int16(POLLIN), revents: 0)
        return poll(&wait, 1, 0) == 1
    }
}

/// The open terminal.
private struct Console: ~Copyable {
    private let descriptor: Int32

    init?(_ path: String) {
        descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    borrowing func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Returns the line without its end; nil at the end of the input or after `wake`.
    borrowing func ask(_ question: String, echoes: Bool, wake: WakePipe) -> SecretBox? {
        guard !wake.isAwake else { return nil }
        var before = termios()
        let isTerminal = tcgetattr(descriptor, &before) == 0
        if isTerminal {
            var during = before
            if !echoes { during.c_lflag &= ~tcflag_t(ECHO | ECHONL) }
            // What was typed before the question does not answer it.
            tcsetattr(descriptor, TCSAFLUSH, &during)
        }
        defer {
            if isTerminal, !echoes {
                tcsetattr(descriptor, TCSAFLUSH, &before)
                write("\n")
            }
        }
        write(question)
        var polls = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wake.read, events: Int16(POLLIN), revents: 0),
        ]
        while poll(&polls, 2, -1) < 0 { if errno != EINTR { return nil } }
        guard polls[1].revents == 0 else { return nil }
        // The terminal gives whole lines.
        var count = 0
        let line = Secret(count: 256) { count = Glibc.read(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return nil }
        let length = line.withBytes { $0[count - 1] == UInt8(ascii: "\n") ? count - 1 : count }
        guard let text = line.part(0..<length) else { return nil }
        return SecretBox(text)
    }
}
