// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The reason why the daemon cannot start or reload, in words for the user at the terminal.
package struct StartError: Error, Sendable, Equatable {
    /// What is wrong, in lower case, without a full stop.
    package var message: String
    /// What to do next.
    package var hint: String
    /// The setting that is wrong, such as `[log] level`.
    package var setting: String?
    /// The exit status: 1 in general, 2 for the command line, 78 (EX_CONFIG) for the configuration.
    ///
    /// A restart does not help with 2 and 78, so the unit does not restart then.
    package var exitCode: Int32
    /// The message and the hint for a program that speaks the language of its user; nil: there is only the English.
    package var phrases: Phrases?
    /// Whether a later attempt may succeed without a change by the user.
    package var mayPass: Bool

    package struct Phrases: Sendable, Equatable {
        package let message: Phrase
        package let hint: Phrase
    }

    package init(_ message: String, hint: String, exitCode: Int32 = 1, mayPass: Bool = false) {
        self.message = message
        self.hint = hint
        self.exitCode = exitCode
        self.mayPass = mayPass
    }

    /// An error that can be told in the language of a user.
    package init(saying message: Phrase, hint: Phrase, exitCode: Int32 = 1, mayPass: Bool = false) {
        self.init(message.description, hint: hint.description, exitCode: exitCode, mayPass: mayPass)
        phrases = Phrases(message: message, hint: hint)
    }

    /// The message as a phrase.
    package var messageWords: Phrase { phrases?.message ?? Phrase(verbatim: message) }

    /// The hint as a phrase.
    package var hintWords: Phrase { phrases?.hint ?? Phrase(verbatim: hint) }

    /// Two lines for stderr, with priorities if stderr is the journal.
    package func text(toJournal: Bool, program: String = Log.program) -> String {
        let (message, hint) = (Log.escaped(message), Log.escaped(hint))
        return toJournal ? "<3>\(message)\n<3>hint: \(hint)\n" : "\(program): error: \(message)\nhint: \(hint)\n"
    }
}
