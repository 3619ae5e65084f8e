// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl status`: who serves, readers and health on one page.
enum StatusCommand {
    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let connection = try await invocation.connect(keepsEvents: false)
        let (info, readers, checks) = try await Invocation.ask { () throws(ClientError) in
            (try await connection.info(), try await connection.readers(), try await connection.health())
        }
        if invocation.wantsJSON { return .done }
        let version = info.protocolVersion.map { " (protocol \($0))" } ?? ""
        Output.line("\(info.name) \(info.version)\(version)")
        var rows = [("drivers", info.drivers.isEmpty ? "none" : info.drivers.joined(separator: ", "))]
        for reader in readers { rows.append(("reader", "\(reader.name): \(reader.words)")) }
        if readers.isEmpty { rows.append(("reader", "none")) }
        let bad = checks.count { !$0.isOK }
        let words = bad == 1 ? "1 check failed" : "\(bad) checks failed"
        rows.append(("health", bad == 0 ? "good" : "\(words), see badgectl health"))
        Output.line(Help.columns(rows))
        return .done
    }
}
