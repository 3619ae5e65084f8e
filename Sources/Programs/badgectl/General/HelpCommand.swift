// SPDX-License-Identifier: GPL-3.0-or-later

/// `badgectl help`: the same as `--help`. The parser does all of it.
enum HelpCommand {
    static let spec = CommandSpec(
        name: "help",
        summary: "show this help, or that of a command",
        operand: ValueSpec("COMMAND", .commands, isOptional: true),
        run: { _ in .done }
    )
}
