// SPDX-License-Identifier: GPL-3.0-or-later

/// Why the daemon cannot start (or cannot reload), in words for the person at the terminal.
package struct StartError: Error, Sendable, Equatable {
    /// What is wrong, in lower case, without a final stop.
    package var message: String
    /// What to do next.
    package var hint: String
    /// 1 general, 2 command line, 78 configuration (EX_CONFIG): those that a restart cannot heal are distinct, so that
    /// the unit does not try again.
    package var exitCode: Int32

    package init(_ message: String, hint: String, exitCode: Int32 = 1) {
        (self.message, self.hint, self.exitCode) = (message, hint, exitCode)
    }

    /// Two lines for stderr; with priorities when the journal reads them, as `Log` does.
    package func text(toJournal: Bool) -> String {
        let (message, hint) = (Log.escaped(message), Log.escaped(hint))
        return toJournal ? "<3>\(message)\n<3>hint: \(hint)\n" : "badged: error: \(message)\nhint: \(hint)\n"
    }
}
