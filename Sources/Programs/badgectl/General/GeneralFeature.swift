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
        let info = try await connection.info()
        let readers = try await permitted { () async throws(ClientError) in try await connection.readers() }
        let checks = try await permitted { () async throws(ClientError) in try await connection.health() }
        if invocation.wantsJSON { return }
        let version = info.protocolVersion.map { tr(" (protocol \($0))") } ?? ""
        Output.line("\(info.name) \(info.version)\(version)".printable)
        var rows = [(tr("drivers"), info.drivers.isEmpty ? tr("none") : info.drivers.joined(separator: ", "))]
        for reader in readers ?? [] { rows.append((tr("reader"), "\(reader.name): \(reader.summary)")) }
        if readers?.isEmpty != false { rows.append((tr("reader"), readers == nil ? denied : tr("none connected"))) }
        if let permissions = info.permissions {
            rows.append((tr("you may"), permissions.isEmpty ? tr("nothing") : permissions.joined(separator: ", ")))
        }
        rows.append((tr("health"), checks.map(summary) ?? denied))
        Output.line(Help.columns(rows))
    }

    private static let denied = tr("not shown: you lack the permission readers")

    /// The answer to a question; nil: this user lacks the permission.
    private static func permitted<Value: Sendable>(
        _ ask: () async throws(ClientError) -> Value
    ) async throws(ClientError) -> Value? {
        do throws(ClientError) {
            return try await ask()
        } catch {
            if case .accessDenied = error { return nil }
            throw error
        }
    }

    private static func summary(_ checks: [BadgedClient.HealthCheck]) -> String {
        let failed = checks.count { !$0.isOK && !$0.isUnknown && !$0.isOptional }
        let count = failed == 1 ? tr("1 check failed") : tr("\(failed) checks failed")
        return failed == 0 ? tr("good") : tr("\(count), see badgectl health")
    }
}
