// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// `badgectl __complete WORD...`: what the last word of a command line may be, for the scripts of `badgectl completion`.
///
/// The first line is `files` if the shell completes the name of a file, else `words`. Each further line is a word, perhaps
/// with a tab and what it is.
enum Completion {
    static let spec = ShellCommand(name: "__complete", summary: "complete a command line", run: run)

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let line = PartialLine(invocation.others)
        guard let words = try await words(for: line, invocation) else { return Output.message("files") }
        let fitting = words.filter { $0.word.utf8.starts(with: line.start.utf8) }.map { word, summary in
            line.prefix + word.printable + (summary.isEmpty ? "" : "\t\(summary)")
        }
        Output.message((["words"] + fitting).joined(separator: "\n"))
    }

    /// nil: the names of files.
    private static func words(
        for line: PartialLine,
        _ invocation: Invocation
    ) async throws -> [(word: String, summary: String)]? {
        switch line.wanted {
        case .option(let options): return options.map { ($0.name, $0.summary) }
        case .command: return CommandTable.commands.map { ($0.name, Help.words($0.summary)) }
        case .action(let actions): return actions.map { ($0.name, $0.summary) }
        case .value(let value):
            let names: [String]
            switch value.completion {
            case .files: return nil
            case .readers: names = try await ReadersCommand.names(invocation)
            case .keys: names = try await KeysCommand.names(invocation)
            case .devices: names = try await RemoteCommand.names(invocation)
            case .nothing, .actions, .words, .commands: names = value.choices ?? []
            }
            return names.map { ($0, "") }
        }
    }
}
