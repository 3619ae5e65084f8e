// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// The commands about badged itself and its readers.
let generalFeature = FeatureCommands(
    group: .administration,
    commands: [
        StatusCommand.spec, HealthCommand.spec, ReadersCommand.spec, MetricsCommand.spec, ReportCommand.spec,
        HelpCommand.spec,
    ]
)

extension OptionSpec {
    static let reader = OptionSpec(.reader, ValueSpec("NAME", .readers), "use this reader")
}

extension Reader {
    /// A summary such as `eID card, 2 PIN tries left`.
    var summary: String {
        guard isAttached else { return tr("gone") }
        var parts: [String] = []
        if let card {
            parts.append(CommandTable.describe(card) ?? tr("unknown card"))
        } else {
            parts.append(isInsertable ? tr("virtual card, not inserted") : tr("no card"))
        }
        if hasKeypad { parts.append(tr("keypad")) }
        if isRemote { parts.append(tr("over the network")) }
        if isBusy { parts.append(tr("in use by another program")) }
        return parts.joined(separator: ", ")
    }
}

/// `badgectl help`: the same as `--help`. The parser does all of it.
enum HelpCommand {
    static let spec = ShellCommand(
        name: "help",
        summary: "show this help, that of a command or of its action, or a topic",
        operand: ValueSpec("COMMAND", .commands, isOptional: true),
        others: ValueSpec("ACTION", .actions),
        run: { _ in }
    )
}

/// `badgectl status`: shows badged, its readers and its health.
enum StatusCommand {
    static let spec = ShellCommand(
        name: "status",
        summary: "show which badged runs, its readers and cards",
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let connection = try await invocation.connect(keepsEvents: false)
        let (info, readers, checks) = (
            try await connection.info(), try await connection.readers(), try await connection.health()
        )
        if invocation.wantsJSON { return }
        let version = info.protocolVersion.map { tr(" (protocol \($0))") } ?? ""
        Output.line("\(info.name) \(info.version)\(version)".printable)
        var rows = [(tr("drivers"), info.drivers.isEmpty ? tr("none") : info.drivers.joined(separator: ", "))]
        for reader in readers { rows.append((tr("reader"), "\(reader.name): \(reader.summary)")) }
        if readers.isEmpty { rows.append((tr("reader"), tr("none"))) }
        if let permissions = info.permissions {
            rows.append((tr("you may"), permissions.isEmpty ? tr("nothing") : permissions.joined(separator: ", ")))
        }
        let failed = checks.count { !$0.isOK && !$0.isUnknown && !$0.isOptional }
        let count = failed == 1 ? tr("1 check failed") : tr("\(failed) checks failed")
        rows.append((tr("health"), failed == 0 ? tr("good") : tr("\(count), see badgectl health")))
        Output.line(Help.columns(rows))
    }
}
