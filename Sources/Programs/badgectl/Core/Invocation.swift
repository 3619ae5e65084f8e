// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// A command line after parsing.
struct Invocation: Sendable {
    enum Request: Sendable {
        case run(ShellCommand)
        /// Without a command: the help of the program; without an action: that of the command.
        case help(ShellCommand?, CommandAction?)
        case topic(HelpTopic)
        case version
    }

    var request: Request
    /// The values of the options by name; empty for an option without value.
    private var options: [OptionName: String] = [:]
    var operand = ""
    /// The arguments after the operand.
    var others: [String] = []

    private init(_ request: Request) { self.request = request }

    /// The completion of a command line, of which these are the words.
    private init(completing words: [String]) {
        self.init(.run(Completion.spec))
        others = words
        options[.socket] = PartialLine(words).socket
    }

    func has(_ option: OptionName) -> Bool { options[option] != nil }

    func value(of option: OptionName) -> String? { options[option] }

    var given: Dictionary<OptionName, String>.Keys { options.keys }

    var wantsJSON: Bool { has(.json) }

    /// Writes a line for people, unless `--json` writes the messages.
    func show(_ line: String) { if !wantsJSON { Output.line(line.printable) } }

    /// Parses the arguments of the program. Options and the command may come in any order; `--option=VALUE` means the
    /// same as `--option VALUE`.
    static func parse(_ arguments: [String]) throws -> Invocation {
        if arguments.first == Completion.spec.name { return Invocation(completing: Array(arguments.dropFirst())) }
        let (words, given) = try split(arguments)
        let names = CommandTable.commands.map(\.name)
        var command: ShellCommand?
        if let name = words.first {
            command = CommandTable.command(named: name)
            if command == nil { throw usage(tr("unknown command \(name)"), nil, names, name) }
        }
        if given.contains(where: { $0.option == .help }) {
            // `badgectl help wallet --help` is the help of wallet.
            if command?.name == HelpCommand.spec.name, words.count > 1 { return try help(words.dropFirst()) }
            return Invocation(.help(command, command?.actions.first { $0.name == words.dropFirst().first }))
        }
        if given.contains(where: { $0.option == .version }) { return Invocation(.version) }
        guard let command else { return Invocation(.help(nil, nil)) }
        var result = Invocation(.run(command))
        let options = CommandTable.global + command.options
        for (option, value) in given {
            guard let spec = options.first(where: { $0.key == option }) else {
                let text = tr("\(command.name) has no option \(option)")
                throw usage(text, command.name, options.map(\.name), option.description)
            }
            if let choices = spec.value?.choices, !choices.contains(value) {
                let text = tr("\(option) \(value): not one of \(choices.joined(separator: ", "))")
                throw usage(text, command.name, choices, value)
            }
            if spec.value?.name == ValueSpec.seconds.name, seconds(value) == nil {
                let text = tr("\(option) needs a number of seconds from 0 to 86400")
                throw CommandFailure(usage: text, hint: tr("for example: \(option) 2.5"))
            }
            result.options[option] = value
        }
        (result.operand, result.others) = try operands(words.dropFirst(), of: command)
        if command.name == HelpCommand.spec.name {
            return try help(words.dropFirst())
        }
        return result
    }

    /// The help of a command and perhaps of its action.
    private static func help(_ words: ArraySlice<String>) throws -> Invocation {
        if words.count == 1, let topic = words.first.flatMap(HelpTopic.init(rawValue:)) {
            return Invocation(.topic(topic))
        }
        let command = words.first.flatMap(CommandTable.command(named:))
        guard let command, let name = words.dropFirst().first else { return Invocation(.help(command, nil)) }
        // Such as `documents anchors` or `documents anchors import`, whose help is that of the command.
        let phrase = words.dropFirst().joined(separator: " ")
        if command.actions.isEmpty, command.operand?.choices?.contains(name) == true,
            words.count == 2 || command.details.contains(where: { $0.key.contains(phrase) })
        {
            return Invocation(.help(command, nil))
        }
        guard let action = command.actions.first(where: { $0.name == name }), words.count == 2 else {
            let names = command.operand?.choices ?? []
            let word = words.count > 2 && names.contains(name) ? words.dropFirst(2).first ?? "" : name
            throw usage(tr("\(command.name) has no action \(word)"), command.name, names, word)
        }
        return Invocation(.help(command, action))
    }

    /// The value of an option that is a time in seconds; nil without the option.
    func seconds(of option: OptionName) -> Double? { value(of: option).flatMap(Self.seconds) }

    private static func seconds(_ text: String) -> Double? {
        Double(text).flatMap { (0...86_400).contains($0) ? $0 : nil }
    }

    /// Separates the options from the other words.
    private static func split(
        _ arguments: [String]
    ) throws -> (words: [String], options: [(option: OptionName, value: String)]) {
        var rest = arguments[...]
        var words: [String] = []
        var options: [(option: OptionName, value: String)] = []
        let known = CommandTable.global + CommandTable.commands.flatMap(\.options)
        while let argument = rest.popFirst() {
            if argument == "--" {
                words += rest
                break
            }
            guard argument.hasPrefix("-"), argument != "-", !isThumbprint(argument) else {
                words.append(argument)
                continue
            }
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0] == "-h" ? OptionName.help.description : parts[0]
            guard let spec = known.first(where: { $0.name == name }) else {
                let command = words.first.flatMap(CommandTable.command(named:))
                let names = (command.map { CommandTable.global + $0.options } ?? known).map(\.name)
                throw usage(tr("unknown option \(name)"), words.first, names, name)
            }
            var value = parts.count > 1 ? parts[1] : nil
            if let needed = spec.value {
                value = value ?? rest.popFirst()
                if value == nil { throw usage(tr("\(name) needs \(needed.name)"), words.first) }
            } else if value != nil {
                throw usage(tr("\(name) takes no value"), words.first)
            }
            options.append((spec.key, value ?? ""))
        }
        return (words, options)
    }

    /// Whether a word may be the thumbprint of a key: 43 characters of base64url, of which the first may be a dash. No
    /// option is as long, and one with a value has an equals sign.
    static func isThumbprint(_ word: String) -> Bool {
        word.utf8.count == 43 && !word.contains("=")
    }

    private static func operands(
        _ words: ArraySlice<String>,
        of command: ShellCommand
    ) throws -> (operand: String, others: [String]) {
        var rest = words
        var operand = ""
        if let needed = command.operand {
            let choices = needed.choices
            let list = choices?.joined(separator: ", ")
            guard let word = rest.popFirst() else {
                if needed.isOptional { return ("", []) }
                throw usage(tr("\(command.name) needs \(list ?? needed.name)"), command.name)
            }
            if let choices, let list, !choices.contains(word) {
                let text =
                    choices.count == 1
                    ? tr("\(command.name) has no action \(word)") : tr("\(word) is not one of \(list)")
                throw usage(text, command.name, choices, word)
            }
            operand = word
        }
        if let extra = rest.first, command.others == nil {
            throw usage(tr("unexpected argument \(extra)"), command.name)
        }
        return (operand, Array(rest))
    }

    /// `did you mean WORD? ` in the language of the user, or nothing.
    static func question(_ word: String, among words: [String]) -> String {
        Suggestion.closest(to: word, among: words).map { tr("did you mean \($0)? ") } ?? ""
    }

    /// `words` are valid in place of `word`.
    private static func usage(
        _ text: String,
        _ command: String?,
        _ words: [String] = [],
        _ word: String = ""
    ) -> CommandFailure {
        let known = command.flatMap(CommandTable.command(named:))
        let help = tr("badgectl \(known.map { $0.name + " " } ?? "")--help shows what is possible")
        return CommandFailure(usage: text, hint: Self.question(word, among: words) + help)
    }
}

extension Invocation {
    /// Connects to badged. With `--json` the messages are written as they arrive.
    ///
    /// - Parameters:
    ///   - keepsEvents: false for a command that reads only answers.
    ///   - showsEvents: whether `--json` writes events, too; nil: as `keepsEvents`.
    /// - Returns: the connection.
    /// - Throws: the failure with which the program ends.
    func connect(keepsEvents: Bool, showsEvents: Bool? = nil) async throws -> DaemonConnection {
        let show = show(events: showsEvents ?? keepsEvents)
        // A command that only asks waits less: this time counts twice, for the answer and for a ping.
        let timeout: Duration = keepsEvents ? .seconds(10) : .seconds(5)
        return try await DaemonConnection.connect(
            to: socket,
            keepsEvents: keepsEvents,
            timeout: timeout,
            onMessage: show
        )
    }

    /// Connects as soon as badged can be reached again, for a command that goes on when badged is restarted.
    func reconnect() async throws -> DaemonConnection {
        let retry = RetryPolicy(longestPause: .seconds(2))
        let connections = DaemonConnection.connections(to: socket, retry: retry, onMessage: show(events: true))
        var iterator = connections.makeAsyncIterator()
        guard let connection = try await iterator.next() else { throw ClientError.cancelled }
        return connection
    }

    /// What a command says before `reconnect`.
    static let waiting = tr("badged has closed the connection. Waiting until it runs again.")

    var socket: String { value(of: .socket) ?? SocketPath.standard }

    /// Notes the phrases of messages, and writes the messages for `--json`.
    private func show(events: Bool) -> @Sendable (Event) -> Void {
        // The words of a wallet are for the terminal alone; a document is what the user has asked for.
        { [wantsJSON] event in
            DaemonWords.note(event.json)
            guard wantsJSON else { return }
            let isWanted = event.message is DocumentMessage || event.message is MdocMessage
            guard events || event.isAnswer, !event.tellsSecret || isWanted else { return }
            Output.json(event.text)
        }
    }
}

extension DaemonConnection {
    /// Whether badged has closed the connection or does not answer, so that a new connection may work.
    var hasEnded: Bool { ending == .closed || ending == .noAnswer }
}
