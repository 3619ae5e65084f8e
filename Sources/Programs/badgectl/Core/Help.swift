// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// Makes the texts of `--help` from the command table.
enum Help {
    static let exitStatus = [
        ("0", tr("done")), ("1", tr("not done, for example the PIN was not changed")), ("2", tr("wrong usage")),
        ("3", tr("badged cannot be reached")), ("4", tr("access denied; agent: browsers are not served")),
        ("5", tr("health: something optional is missing")), ("6", tr("a check of a document has failed")),
        ("7", tr("not everything about a document is proven")), ("8", tr("mdoc: the holder is not over the age")),
        ("9", tr("mdoc: the phone has given nothing")), ("130", tr("interrupted with Ctrl-C")),
    ]

    static func text(for command: ShellCommand?, _ action: CommandAction? = nil) -> String {
        guard let command else { return program }
        return action.map { text(of: $0, of: command) } ?? text(of: command)
    }

    private static var program: String {
        """
        \(usage("[OPTION...] COMMAND"))
        \(String(repeating: " ", count: tr("Usage:").count)) badgectl help COMMAND [ACTION]

        \(tr("Talk to badged, the daemon for ID cards."))

        \(commands)

        \(options(CommandTable.global))

        \(tr("Topics of badgectl help:")) \(HelpTopic.names.joined(separator: ", "))

        \(tr("Exit status:"))
        \(columns(exitStatus))
        """
    }

    /// The commands in their groups, in columns of one width.
    private static var commands: String {
        let rows = columns(
            CommandGroup.allCases.flatMap { CommandTable.commands(of: $0) }.map { (usage($0), words($0.summary)) }
        )
        // A line that continues a summary belongs to the row before it.
        var lines = rows.split(separator: "\n", omittingEmptySubsequences: false)[...]
        func endRow() -> String {
            let row = [lines.removeFirst()] + lines.prefix { $0.hasPrefix("    ") }
            lines = lines.dropFirst(row.count - 1)
            return row.joined(separator: "\n")
        }
        return CommandGroup.allCases.map { group in
            let rows = CommandTable.commands(of: group).map { _ in endRow() }
            return "\(words(group.rawValue)):\n" + rows.joined(separator: "\n")
        }.joined(separator: "\n\n")
    }

    private static func text(of action: CommandAction, of command: ShellCommand) -> String {
        let options = command.options(of: action) + CommandTable.global
        let about = command.details.map(tr).filter { paragraph in
            paragraph.split { !($0.isLetter || $0 == "-") }.contains { $0 == action.name }
        }
        let paragraphs = about.map { "\n" + paragraph($0) + "\n" }.joined()
        return """
            \(usage("\(command.name) \(action.usage) [OPTION...]"))

            \(paragraph(action.summary.asSentence + "."))
            \(paragraphs)
            \(self.options(options))
            """
    }

    private static func text(of command: ShellCommand) -> String {
        let options = command.options + CommandTable.global
        let list = columns(command.actions.map { ($0.usage, $0.summary) })
        let actions = command.actions.isEmpty ? "" : "\n\(tr("Actions:"))\n\(list)\n"
        let paragraphs = command.details.map { "\n" + paragraph(tr($0)) + "\n" }.joined()
        let words = words(command.summary)
        let summary = words.asSentence + "."
        return """
            \(usage("\(usage(command)) [OPTION...]"))

            \(paragraph(summary))
            \(actions)\(paragraphs)\(examples(command))
            \(self.options(options))
            """
    }

    /// A summary or the name of a group of commands in the language of the user; po/extract finds them.
    static func words(_ text: String) -> String { tr(Phrase(stringLiteral: text)) }

    private static func usage(_ words: String) -> String { "\(tr("Usage:")) badgectl \(words)" }

    private static func options(_ options: [OptionSpec]) -> String {
        tr("Options:") + "\n" + columns(options.map { (usage($0), $0.summary) })
    }

    private static func usage(_ command: ShellCommand) -> String {
        let operand = command.operand.map { " \($0.usage)" } ?? ""
        let others = command.others.map { " [\($0.name)...]" } ?? ""
        return command.name + operand + others
    }

    /// Breaks a paragraph of the source into lines for the terminal.
    private static func paragraph(_ text: String) -> String {
        Layout.wrapped(text.split(separator: "\n").joined(separator: " "))
    }

    private static func usage(_ option: OptionSpec) -> String {
        option.value.map { "\(option.name) \($0.name)" } ?? option.name
    }

    /// The numbers with which the program ends.
    static var exitCodes: String { columns(exitStatus) }

    /// Examples that can be copied to a shell as they are.
    private static func examples(_ command: ShellCommand) -> String {
        guard !command.examples.isEmpty else { return "" }
        return "\n\(tr("Examples:"))\n" + command.examples.map { "  # \($0.purpose)\n  \($0.line)\n" }.joined()
    }

    /// Formats rows as two columns; the second one is aligned and wrapped.
    static func columns(_ rows: [(String, String)], indentation: String = "  ") -> String {
        let rows = rows.map { (indentation + $0.0.printable, $0.1.printable) }
        let left = (rows.map { Layout.width(of: $0.0.unicodeScalars) }.max() ?? 0) + 2
        return rows.map { Layout.row($0.0, $0.1, at: left) }.joined(separator: "\n")
    }
}
