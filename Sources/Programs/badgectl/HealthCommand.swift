// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl health`: a line per check.
enum HealthCommand {
    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let connection = try await invocation.connect(keepsEvents: false)
        let checks = try await Invocation.ask { () throws(ClientError) in try await connection.health() }
        let bad = checks.count { !$0.isOK }
        if !invocation.wantsJSON {
            if checks.isEmpty { Output.line("good: no driver that could miss something") }
            for check in checks {
                Output.line(check.isOK ? "good \(check.name)" : "BAD  \(words(check))")
            }
        }
        guard bad == 0 else {
            throw Failure(
                .failed,
                "\(bad) of \(checks.count) checks failed",
                hint: "do what the lines marked BAD advise, then run badgectl health again"
            )
        }
        return .done
    }

    /// What has failed, since when, and what to do.
    private static func words(_ check: HealthCheck) -> String {
        let age = check.errorAge.map { " for \(words($0))" } ?? ""
        return check.name + age + (check.advice.map { ": \($0)" } ?? "")
    }

    /// In the largest unit of which there are two at least: 90 minutes are not one hour.
    private static func words(_ time: Duration) -> String {
        let seconds = max(time.components.seconds, 1)
        let units: [(length: Int64, name: String)] = [(86_400, "days"), (3600, "h"), (60, "min")]
        let unit = units.first { seconds >= 2 * $0.length } ?? (1, "s")
        return "\(seconds / unit.length) \(unit.name)"
    }
}
