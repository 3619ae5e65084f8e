// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// What a feature adds to badgectl.
struct Feature: Sendable {
    var commands: [CommandSpec]
    /// Describes a card of the feature's kind; nil for any other card.
    var describeCard: @Sendable (Card) -> String? = { _ in nil }
}

/// A value on the command line, and how a shell completes it.
struct ValueSpec: Sendable {
    enum Completion: Sendable, Equatable {
        case nothing
        case files
        /// These words; no other value is valid.
        case words([String])
    }

    /// The name in the help, such as `NAME`.
    var name: String
    var completion = Completion.nothing

    init(_ name: String, _ completion: Completion = .nothing) { (self.name, self.completion) = (name, completion) }

    /// The only valid values; nil: any value.
    var choices: [String]? {
        if case .words(let words) = completion { words } else { nil }
    }
}

/// An option of one command or of all commands.
struct OptionSpec: Sendable {
    /// With its dashes.
    var name: String
    /// nil: the option takes no value.
    var value: ValueSpec?
    var summary: String

    init(_ name: String, _ value: ValueSpec, _ summary: String) {
        (self.name, self.value, self.summary) = (name, value, summary)
    }

    init(_ name: String, _ summary: String) { (self.name, self.summary) = (name, summary) }
}

/// A command. The parser, the help and the completions are made from this.
struct CommandSpec: Sendable {
    var name: String
    var summary: String
    /// The one argument that the command needs.
    var operand: ValueSpec?
    var options: [OptionSpec] = []
    /// Paragraphs of `badgectl COMMAND --help`.
    var details: [String] = []
    var run: @Sendable (Invocation) async throws(Failure) -> ExitStatus
}
