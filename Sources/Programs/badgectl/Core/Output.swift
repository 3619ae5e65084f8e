// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Writes to standard output and error without a buffer, so that each line is visible before the next question. Lines for
/// the user are wrapped on a terminal.
enum Output {
    /// Writes text for people to standard output, without control characters.
    static func line(_ text: String) { message(text.printableLines) }

    /// Writes a line for programs to standard output, unchanged: a message of badged, a script.
    static func message(_ text: String) {
        Terminal.removeStep()
        guard write(text + "\n", to: STDOUT_FILENO) else {
            // The reader of the pipe has ended, as in `badgectl readers --watch | head`. That is no error.
            quit(.failed)
        }
    }

    static func error(_ failure: CommandFailure) {
        note("badgectl: error: \(failure.text.printable)")
        if let hint = failure.hint { note("hint: \(hint.printable)") }
    }

    /// Writes a line for the user to standard error.
    static func note(_ text: String) {
        // A question may be open on the same terminal.
        Terminal.say(Layout.wrapped(text, for: STDERR_FILENO), on: STDERR_FILENO)
    }

    /// Writes all of the text. Returns false when the other side has closed.
    @discardableResult
    static func write(_ text: String, to descriptor: Int32) -> Bool {
        var copy = text
        return copy.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                if count <= 0 { return false }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            return true
        }
    }

    /// Ends the program with the terminal in its original state.
    static func quit(_ status: ExitStatus) -> Never {
        Terminal.end(forever: true)
        exit(status.code)
    }
}
