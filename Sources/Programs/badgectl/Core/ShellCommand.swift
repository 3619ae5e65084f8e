// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// What a feature adds to badgectl.
struct FeatureCommands: Sendable {
    /// Where the help of the program lists the commands.
    var group: CommandGroup
    var commands: [ShellCommand]
    /// Describes a card of the feature's kind; nil for any other card.
    var describeCard: @Sendable (Card) -> String? = { _ in nil }
}

/// The groups of commands, in the order of the help.
enum CommandGroup: String, CaseIterable, Sendable {
    case idCard = "ID card"
    case wallet = "Wallet and logins"
    case doors = "Doors"
    case administration = "Administration"
}

/// A value on the command line, and how a shell completes it.
struct ValueSpec: Sendable {
    enum Completion: Sendable, Equatable {
        case nothing
        case files
        /// The names of the card readers that badged has now.
        case readers
        /// The labels of the own keys.
        case keys
        /// The names of the devices that share readers.
        case devices
        /// The names of the commands and the topics of the help; no other value is valid.
        case commands
        /// The actions of the command before it; the parser checks them.
        case actions
        /// These words; no other value is valid.
        case words([String])
    }

    /// The name in the help, such as `NAME`.
    var name: String
    var completion = Completion.nothing
    /// Whether the argument of a command may be missing.
    var isOptional = false

    init(_ name: String, _ completion: Completion = .nothing, isOptional: Bool = false) {
        self.name = name
        self.completion = completion
        self.isOptional = isOptional
    }

    /// A time in seconds.
    static let seconds = ValueSpec("SECONDS")
    static let file = ValueSpec("FILE", .files)
    static let key = ValueSpec("KEY", .keys)
    static let device = ValueSpec("DEVICE", .devices)
    static let user = ValueSpec("USER")

    /// The value as one that may be missing.
    var optional: ValueSpec { ValueSpec(name, completion, isOptional: true) }

    /// The only valid values; nil: any value.
    var choices: [String]? {
        switch completion {
        case .words(let words): words
        case .commands: CommandTable.commands.map(\.name) + HelpTopic.names
        case .nothing, .files, .readers, .keys, .devices, .actions: nil
        }
    }

    /// The value in `Usage:`.
    var usage: String {
        var text = name
        if case .words(let words) = completion {
            let list = words.joined(separator: "|")
            // A long list is in the details of the command.
            if list.count <= 20 { text = list }
        }
        return isOptional ? "[\(text)]" : text
    }
}

/// An option of one command or of all commands.
struct OptionSpec: Sendable {
    var key: OptionName
    /// nil: the option takes no value.
    var value: ValueSpec?
    var summary: String

    /// The name as it is typed.
    var name: String { key.description }

    init(_ key: OptionName, _ summary: Phrase) { self.init(key, nil, summary) }

    init(_ key: OptionName, _ value: ValueSpec?, _ summary: Phrase) {
        self.key = key
        self.value = value
        self.summary = tr(summary)
    }
}

extension JSON {
    /// The card of a kind that a virtual reader has had before, or else a new one: `card` of SET_CARD.
    static func keptCard(_ kind: String) -> JSON {
        .object([.init("kind", .string(kind)), .init("kept", .bool(true))])
    }
}

/// An example in the help: what it is for, and the command line.
struct Example: Sendable {
    let purpose: String
    let line: String

    init(_ purpose: Phrase, _ line: String) {
        self.purpose = tr(purpose)
        self.line = line
    }
}

/// A command. The parser, the help and the completions are made from this.
struct ShellCommand: Sendable {
    var name: String
    var summary: String
    /// The first argument of the command.
    var operand: ValueSpec?
    /// Any number of arguments after the operand; nil: there are none.
    var others: ValueSpec?
    var options: [OptionSpec] = []
    /// The actions of a command whose first argument is one of several words.
    var actions: [CommandAction] = []
    /// Paragraphs of `badgectl COMMAND --help`.
    var details: [Phrase] = []
    var examples: [Example] = []
    /// The card that the user puts on the reader.
    var card = tr("ID card")
    /// What happens from a progress in percent on: docs/protocol/eid.md, RUN_AUTH. FIELDS is what was agreed to.
    var progress = [
        20: tr("the card is there"), 40: tr("proving the card"), 60: tr("reading FIELDS"), 80: tr("sending you back"),
    ]
    /// Whether a command line asks for a consent, unless it has `--yes`.
    var asksForConsent: @Sendable (Invocation) -> Bool = { _ in true }
    /// The card that is put into a virtual reader at the first insertion.
    var virtualCard: @Sendable (Invocation) -> JSON = { _ in .keptCard("eid") }
    var run: @Sendable (Invocation) async throws -> Void
}
