// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl health`: shows the checks of badged.
enum HealthCommand {
    static let spec = CommandSpec(
        name: "health",
        summary: "show what badged needs, and what to do where it is missing",
        details: ["Ends with 1 when a check fails."],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let connection = try await invocation.connect(keepsEvents: false)
        let checks = try await Invocation.ask { () throws(ClientError) in try await connection.health() }
        let failed = checks.count { !$0.isOK && !$0.isUnknown }
        if !invocation.wantsJSON {
            if checks.isEmpty { Output.line("good: no driver runs, so there is nothing to check") }
            for check in checks {
                let mark = check.isOK ? "good" : check.isUnknown ? "?   " : "BAD "
                Output.line("\(mark) \(describe(check))".printable)
            }
        }
        guard failed == 0 else {
            throw Failure(
                .failed,
                "\(failed) of \(checks.count) checks failed",
                hint: "do what the lines marked BAD say, then run badgectl health again"
            )
        }
        return .done
    }

    /// What a good check has found.
    private static func found(_ check: HealthCheck) -> String {
        guard let anchors = check.trustAnchors, let newest = anchors.newest else { return "" }
        let learnt = anchors.linksLearnt == 0 ? "" : ", \(anchors.linksLearnt) link certificates learnt"
        return ": \(newest)" + (anchors.lastDay.map { " until \($0)" } ?? "") + learnt
    }

    /// What has failed, for how long, why, and what to do.
    private static func describe(_ check: HealthCheck) -> String {
        guard !check.isOK else { return check.name + found(check) }
        let age = check.errorAge.map { " for \(describe($0))" } ?? ""
        let texts = [check.cause, check.advice].compactMap(\.self)
        return check.name + age + (texts.isEmpty ? "" : ": " + texts.joined(separator: ": "))
    }

    /// The time in the largest unit of which there are at least two. So 90 minutes do not become 1 h.
    private static func describe(_ time: Duration) -> String {
        let seconds = max(time.components.seconds, 1)
        let units: [(length: Int64, name: String)] = [(86_400, "days"), (3600, "h"), (60, "min")]
        let unit = units.first { seconds >= 2 * $0.length } ?? (1, "s")
        return "\(seconds / unit.length) \(unit.name)"
    }
}
