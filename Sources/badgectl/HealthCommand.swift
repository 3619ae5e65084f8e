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
                let advice = check.advice.map { ": \($0)" } ?? ""
                Output.line("\(check.isOK ? "good" : "BAD ") \(check.name)\(check.isOK ? "" : advice)")
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
}
