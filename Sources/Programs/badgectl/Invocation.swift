// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// One option of a command, or of all.
struct OptionSpec: Sendable {
    /// With its dashes.
    var name: String
    /// What follows it, such as `NAME`; nil when nothing does.
    var value: String?
    var summary: String
    /// The shell completes it with file names.
    var isPath = false
}

/// One command: help, completions and the parser know it from here.
struct CommandSpec: Sendable {
    var name: String
    var summary: String
    /// The one word that it needs, as (name, all values); no values: any word.
    var operand: (name: String, choices: [String])?
    var options: [OptionSpec] = []
    /// Paragraphs of `badgectl COMMAND --help`.
    var details: [String] = []
    var run: @Sendable (Invocation) async throws(Failure) -> ExitStatus
}

/// A command line, understood.
struct Invocation: Sendable {
    enum Request: Sendable {
        case run(CommandSpec)
        /// nil: of the program.
        case help(CommandSpec?)
        case version
    }

    var request: Request
    var options: [String: String] = [:]
    var operand: String?

    var wantsJSON: Bool { options["--json"] != nil }

    /// Options and the command's name may come in any order; `--option=VALUE` is `--option VALUE`.
    static func parse(_ arguments: [String], table: [CommandSpec], global: [OptionSpec]) throws(Failure) -> Invocation {
        var rest = arguments[...]
        var words: [String] = []
        var given: [(name: String, value: String?)] = []
        let known = global + table.flatMap(\.options)
        var optionsEnded = false
        while let argument = rest.popFirst() {
            guard !optionsEnded, argument.hasPrefix("-"), argument != "-" else {
                words.append(argument)
                continue
            }
            if argument == "--" {
                optionsEnded = true
                continue
            }
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let written = parts.first.map(String.init) ?? argument
            let name = written == "-h" ? "--help" : written
            guard let spec = known.first(where: { $0.name == name }) else {
                throw usage("unknown option \(name)", words.first, table)
            }
            var value = parts.count > 1 ? String(parts[1]) : nil
            if spec.value == nil, value != nil { throw usage("\(name) takes no value", words.first, table) }
            if let needed = spec.value, value == nil {
                value = rest.popFirst()
                if value == nil { throw usage("\(name) needs \(needed)", words.first, table) }
            }
            given.append((name, value))
        }
        let command = try words.first.map { word throws(Failure) in
            guard let spec = table.first(where: { $0.name == word }) else {
                throw usage("unknown command \(word)", nil, table)
            }
            return spec
        }
        if given.contains(where: { $0.name == "--help" }) { return Invocation(request: .help(command)) }
        if given.contains(where: { $0.name == "--version" }) { return Invocation(request: .version) }
        guard let command else { throw usage("no command given", nil, table) }
        var result = Invocation(request: .run(command))
        for option in given {
            guard (global + command.options).contains(where: { $0.name == option.name }) else {
                throw usage("\(command.name) has no option \(option.name)", command.name, table)
            }
            result.options[option.name] = option.value ?? ""
        }
        try result.takeOperand(words.dropFirst(), of: command, table)
        return result
    }

    private mutating func takeOperand(
        _ words: ArraySlice<String>,
        of command: CommandSpec,
        _ table: [CommandSpec]
    ) throws(Failure) {
        if let needed = command.operand {
            let choices = needed.choices.isEmpty ? [needed.name] : needed.choices
            guard let word = words.first else {
                throw Self.usage("\(command.name) needs \(choices.joined(separator: ", "))", command.name, table)
            }
            guard needed.choices.isEmpty || choices.contains(word) else {
                throw Self.usage(
                    "\(word) is not one of \(needed.choices.joined(separator: ", "))",
                    command.name,
                    table
                )
            }
            operand = word
        }
        if let extra = words.dropFirst(command.operand == nil ? 0 : 1).first {
            throw Self.usage("unexpected argument \(extra)", command.name, table)
        }
    }

    static func usage(_ text: String, _ command: String?, _ table: [CommandSpec]) -> Failure {
        let known = command.flatMap { name in table.contains { $0.name == name } ? name + " " : nil } ?? ""
        return Failure(.usage, text, hint: "badgectl \(known)--help shows what there is")
    }
}

extension Invocation {
    /// Connects; `keepsEvents` is false for a command that only asks. With `--json` messages are written as they come:
    /// all of them when `showsEvents`, else the direct answers; nil: all when events are kept.
    func connect(keepsEvents: Bool, showsEvents: Bool? = nil) async throws(Failure) -> DaemonConnection {
        let showsEvents = showsEvents ?? keepsEvents
        let show: @Sendable (Event) -> Void = { if showsEvents || $0.isAnswer { Output.line($0.text) } }
        return try await Self.ask { () throws(ClientError) in
            try await DaemonConnection.connect(
                to: options["--socket"] ?? SocketPath.standard,
                keepsEvents: keepsEvents,
                onMessage: wantsJSON ? show : nil
            )
        }
    }

    /// Asks the library; its errors end the program.
    static func ask<Value>(_ body: () async throws(ClientError) -> Value) async throws(Failure) -> Value {
        do throws(ClientError) {
            return try await body()
        } catch {
            throw Failure(error)
        }
    }
}
