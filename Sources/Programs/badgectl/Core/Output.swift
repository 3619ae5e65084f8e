// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// Writes to standard output and error without a buffer, so that each line is visible before the next question. Lines
/// for the user are wrapped on a terminal.
enum Output {
    /// Writes text for people to standard output, without control characters.
    static func line(_ text: String) { message(text.printableLines) }

    /// Writes a message of badged to standard output. A terminal gets no character that could control it.
    static func json(_ text: String) { message(isatty(STDOUT_FILENO) == 1 ? text.printableJSON : text) }

    /// Writes a line for programs to standard output, unchanged, such as a script.
    static func message(_ text: String) {
        Console.removeStep()
        guard write(text + "\n", to: STDOUT_FILENO) else {
            // The reader of the pipe has ended, as in `badgectl readers --watch | head`. That is no error.
            quit(.failed)
        }
    }

    /// Writes an object of JSON to standard output, in one line.
    static func object(_ body: (inout JSONWriter) -> Void) {
        json(String(decoding: JSONWriter.bytes(body), as: UTF8.self))
    }

    static func error(_ failure: CommandFailure) {
        note(tr("badgectl: error: \(PlainWords.text(failure.text).printable)"))
        if let hint = failure.hint { note(tr("hint: \(PlainWords.text(hint).printable)")) }
    }

    /// Says which file of a folder is not used, and why.
    static func ignored(_ complaint: String) { note(tr("ignored: \(DaemonWords.placed(complaint))").printable) }

    /// Writes a line for the user to standard error.
    static func note(_ text: String) {
        // A question may be open on the same terminal.
        Console.say(Layout.wrapped(text, for: STDERR_FILENO), on: STDERR_FILENO)
    }

    /// Writes all of the text. Returns false when the other side has closed.
    @discardableResult
    static func write(_ text: String, to descriptor: Int32) -> Bool { write(Array(text.utf8), to: descriptor) }

    /// Writes all of the bytes. Returns false when the other side has closed, or takes no more.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Ends the program with the terminal in its original state.
    static func quit(_ status: ExitStatus) -> Never {
        Console.end(forever: true)
        exit(status.code)
    }
}
