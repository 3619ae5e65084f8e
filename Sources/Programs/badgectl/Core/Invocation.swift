// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// A command line after parsing.
struct Invocation: Sendable {
    enum Request: Sendable {
        case run(CommandSpec)
        /// nil: the help of the program.
        case help(CommandSpec?)
        case version
    }

    var request: Request
    /// The values of the options by name; empty for an option without value.
    private var options: [String: String] = [:]
    var operand = ""

    private init(_ request: Request) { self.request = request }

    func has(_ option: String) -> Bool { options[option] != nil }

    func value(of option: String) -> String? { options[option] }

    var wantsJSON: Bool { has("--json") }

    /// Parses the arguments of the program. Options and the command may come in any order; `--option=VALUE` means the
    /// same as `--option VALUE`.
    static func parse(_ arguments: [String]) throws(Failure) -> Invocation {
        let (words, given) = try split(arguments)
        var command: CommandSpec?
        if let name = words.first {
            command = CommandTable.commands.first { $0.name == name }
            if command == nil { throw usage("unknown command \(name)", nil) }
        }
        if given.contains(where: { $0.option == "--help" }) { return Invocation(.help(command)) }
        if given.contains(where: { $0.option == "--version" }) { return Invocation(.version) }
        guard let command else { throw usage("no command given", nil) }
        var result = Invocation(.run(command))
        for (option, value) in given {
            guard (CommandTable.global + command.options).contains(where: { $0.name == option }) else {
                throw usage("\(command.name) has no option \(option)", command.name)
            }
            result.options[option] = value
        }
        result.operand = try operand(words.dropFirst(), of: command)
        return result
    }

    /// Separates the options from the other words.
    private static func split(
        _ arguments: [String]
    ) throws(Failure) -> (words: [String], options: [(option: String, value: String)]) {
        var rest = arguments[...]
        var words: [String] = []
        var options: [(option: String, value: String)] = []
        let known = CommandTable.global + CommandTable.commands.flatMap(\.options)
        while let argument = rest.popFirst() {
            if argument == "--" {
                words += rest
                break
            }
            guard argument.hasPrefix("-"), argument != "-" else {
                words.append(argument)
                continue
            }
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0] == "-h" ? "--help" : parts[0]
            guard let spec = known.first(where: { $0.name == name }) else {
                throw usage("unknown option \(name)", words.first)
            }
            var value = parts.count > 1 ? parts[1] : nil
            if let needed = spec.value {
                value = value ?? rest.popFirst()
                if value == nil { throw usage("\(name) needs \(needed.name)", words.first) }
                if let value, let choices = needed.choices, !choices.contains(value) {
                    throw usage("\(name) \(value): not one of \(choices.joined(separator: ", "))", words.first)
                }
            } else if value != nil {
                throw usage("\(name) takes no value", words.first)
            }
            options.append((name, value ?? ""))
        }
        return (words, options)
    }

    private static func operand(_ words: ArraySlice<String>, of command: CommandSpec) throws(Failure) -> String {
        var rest = words
        var operand = ""
        if let needed = command.operand {
            let choices = needed.choices?.joined(separator: ", ")
            guard let word = rest.popFirst() else {
                throw usage("\(command.name) needs \(choices ?? needed.name)", command.name)
            }
            if let choices, needed.choices?.contains(word) == false {
                throw usage("\(word) is not one of \(choices)", command.name)
            }
            operand = word
        }
        if let extra = rest.first { throw usage("unexpected argument \(extra)", command.name) }
        return operand
    }

    private static func usage(_ text: String, _ command: String?) -> Failure {
        let known = CommandTable.commands.first { $0.name == command }
        return Failure(.usage, text, hint: "badgectl \(known.map { $0.name + " " } ?? "")--help shows what is possible")
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
    func connect(keepsEvents: Bool, showsEvents: Bool? = nil) async throws(Failure) -> DaemonConnection {
        let showsEvents = showsEvents ?? keepsEvents
        let show: @Sendable (Event) -> Void = { if showsEvents || $0.isAnswer { Output.line($0.text) } }
        return try await Self.ask { () throws(ClientError) in
            try await DaemonConnection.connect(
                to: value(of: "--socket") ?? SocketPath.standard,
                keepsEvents: keepsEvents,
                onMessage: wantsJSON ? show : nil
            )
        }
    }

    /// Calls the library; its errors become failures of the program.
    static func ask<Value>(_ body: () async throws(ClientError) -> Value) async throws(Failure) -> Value {
        do throws(ClientError) {
            return try await body()
        } catch {
            throw Failure(error)
        }
    }
}
