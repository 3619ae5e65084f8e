// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Standard output and error, unbuffered by the line: what was said is seen before the next question.
enum Output {
    /// One line on standard output.
    static func line(_ text: String) {
        guard write(text + "\n", to: STDOUT_FILENO) else {
            // Nobody reads any more (`badgectl readers --watch | head`): no reason to complain.
            quit(.failed)
        }
    }

    static func error(_ failure: Failure) {
        _ = write("badgectl: error: \(failure.text)\n", to: STDERR_FILENO)
        if let hint = failure.hint { _ = write("hint: \(hint)\n", to: STDERR_FILENO) }
    }

    /// One line on standard error for the person at the terminal.
    static func note(_ text: String) { _ = write(text + "\n", to: STDERR_FILENO) }

    /// Writes everything; false when the other side has gone.
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

    /// Ends the program; the terminal is as it was found.
    static func quit(_ status: ExitStatus) -> Never {
        Terminal.restore(forever: true)
        exit(status.code)
    }
}
