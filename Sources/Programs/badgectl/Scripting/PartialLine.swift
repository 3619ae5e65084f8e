// SPDX-License-Identifier: GPL-3.0-or-later

/// A command line whose last word is not complete yet.
struct PartialLine: Sendable {
    /// What the last word may be.
    enum Wanted {
        case option([OptionSpec])
        case command
        case action([CommandAction])
        case value(ValueSpec)
    }

    /// The command and its arguments before the last word.
    private var words: [String] = []
    /// The option whose value is the last word.
    private var option: OptionSpec?
    /// Whether `--` stands before, behind which nothing is an option.
    private var isLiteral = false
    /// The value of `--socket`.
    private(set) var socket: String?
    /// What stands before the part of the last word that is to be completed, such as `--reader=`.
    private(set) var prefix = ""
    /// The part of the last word that is to be completed.
    private(set) var start = ""

    /// - Parameter arguments: the words behind `badgectl`, as they stand in the line. bash makes three words of
    ///   `--option=VALUE`.
    init(_ arguments: [String]) {
        for word in arguments.dropLast().map(Self.unescaped) where word != "=" || isLiteral {
            if let option {
                if option.key == .socket { socket = word }
                self.option = nil
            } else if isLiteral || !Self.isOption(word) {
                words.append(word)
            } else if word == "--" {
                isLiteral = true
            } else {
                take(option: word)
            }
        }
        start = Self.unescaped(arguments.last ?? "")
        if start == "=", option != nil {
            prefix = start
            start = ""
        } else if option == nil, !isLiteral, let end = start.firstIndex(of: "="), Self.isOption(start) {
            option = Self.option(named: String(start[..<end]))
            prefix = String(start[...end])
            start = String(start[start.index(after: end)...])
        }
    }

    private mutating func take(option word: String) {
        let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
        let spec = Self.option(named: parts[0])
        if parts.count > 1 {
            if spec?.key == .socket { socket = parts[1] }
        } else if spec?.value != nil {
            option = spec
        }
    }

    private static func option(named name: String) -> OptionSpec? {
        (CommandTable.global + CommandTable.commands.flatMap(\.options)).first { $0.name == name }
    }

    private static func isOption(_ word: String) -> Bool {
        word.utf8.first == UInt8(ascii: "-") && word != "-" && !Invocation.isThumbprint(word)
    }

    /// The word without the backslashes of the shell.
    private static func unescaped(_ word: String) -> String {
        var isEscaped = false
        var scalars = String.UnicodeScalarView()
        for scalar in word.unicodeScalars {
            isEscaped = scalar == "\\" && !isEscaped
            if !isEscaped { scalars.append(scalar) }
        }
        return String(scalars)
    }

    /// What the last word may be.
    var wanted: Wanted {
        if let option { return .value(option.value ?? ValueSpec("")) }
        if !isLiteral, start.utf8.first == UInt8(ascii: "-") { return .option(options) }
        guard let name = words.first else { return .command }
        guard let command = CommandTable.command(named: name) else { return .option(options) }
        let arguments = words.dropFirst()
        var value = command.operand
        if let action = arguments.first {
            if command.actions.isEmpty {
                value = command.others
            } else {
                let values = command.actions.first { $0.name == action }?.arguments.dropFirst(arguments.count - 1)
                value = values?.first
            }
        } else if !command.actions.isEmpty {
            return .action(command.actions)
        }
        guard let value, value.completion != .nothing else { return .option(options) }
        guard value.completion == .actions else { return .value(value) }
        let about = arguments.first.flatMap(CommandTable.command(named:))
        if let about, about.actions.isEmpty, let operand = about.operand, operand.choices != nil {
            return .value(operand)
        }
        return .action(about?.actions ?? [])
    }

    /// The options that the command, or its action, has.
    private var options: [OptionSpec] {
        guard !isLiteral else { return [] }
        guard let command = words.first.flatMap(CommandTable.command(named:)) else { return CommandTable.global }
        let action = command.actions.first { $0.name == words.dropFirst().first }
        return (action.map(command.options(of:)) ?? command.options) + CommandTable.global
    }
}
