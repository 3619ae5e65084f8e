// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl status`: shows badged, its readers and its health.
enum StatusCommand {
    static let spec = CommandSpec(
        name: "status",
        summary: "show which badged runs, its readers and cards",
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let connection = try await invocation.connect(keepsEvents: false)
        let (info, readers, checks) = try await Invocation.ask { () throws(ClientError) in
            (try await connection.info(), try await connection.readers(), try await connection.health())
        }
        if invocation.wantsJSON { return .done }
        let version = info.protocolVersion.map { " (protocol \($0))" } ?? ""
        Output.line("\(info.name) \(info.version)\(version)".printable)
        var rows = [("drivers", info.drivers.isEmpty ? "none" : info.drivers.joined(separator: ", "))]
        for reader in readers { rows.append(("reader", "\(reader.name): \(reader.summary)")) }
        if readers.isEmpty { rows.append(("reader", "none")) }
        let failed = checks.count { !$0.isOK && !$0.isUnknown }
        let count = failed == 1 ? "1 check failed" : "\(failed) checks failed"
        rows.append(("health", failed == 0 ? "good" : "\(count), see badgectl health"))
        Output.line(Help.columns(rows))
        return .done
    }
}
