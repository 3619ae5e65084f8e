// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// `badgectl health`: shows the checks of badged.
enum HealthCommand {
    static let spec = ShellCommand(
        name: "health",
        summary: "show what badged needs, and what to do where it is missing",
        details: [
            """
            Ends with 1 when something is broken, and with 5 when only a part is missing that this host can do without,
            such as Bluetooth.
            """
        ],
        examples: [
            Example("show only what is broken", "LC_ALL=C badgectl health | grep '^BAD'")
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let connection = try await invocation.connect(keepsEvents: false)
        let checks = try await connection.health()
        let failed = checks.filter { !$0.isOK && !$0.isUnknown }
        let (broken, missing) = (failed.count { !$0.isOptional }, failed.count(where: \.isOptional))
        if !invocation.wantsJSON {
            if checks.isEmpty { Output.line(tr("good: no driver runs, so there is nothing to check")) }
            for check in checks {
                let mark =
                    check.isOK
                    ? tr("good ") : check.isUnknown ? tr("?    ") : check.isOptional ? tr("none ") : tr("BAD  ")
                Output.line("\(mark)\(describe(check))".printable)
            }
        }
        guard broken == 0 else {
            throw CommandFailure(
                tr("\(broken) of \(checks.count) checks failed"),
                hint: tr("do what the lines marked BAD say, then run badgectl health again")
            )
        }
        guard missing > 0 else { return }
        if !invocation.wantsJSON {
            Output.note(tr("Nothing is broken. The lines marked none say how to get what is missing, if you need it."))
        }
        throw ExitStatus.incomplete
    }

    /// What a good check has found.
    private static func found(_ check: BadgedClient.HealthCheck) -> String {
        guard let anchors = check.trustAnchors, let newest = anchors.newest else { return "" }
        let learnt = anchors.linksLearnt == 0 ? "" : tr(", \(anchors.linksLearnt) link certificates learnt")
        return ": \(newest)" + (anchors.lastDay.map { tr(" until \($0)") } ?? "") + learnt
    }

    /// What has failed, for how long, why, and what to do.
    private static func describe(_ check: BadgedClient.HealthCheck) -> String {
        let name = CheckNames.text(check.name)
        guard !check.isOK else { return name + found(check) }
        let head = check.errorAge.map { tr("\(name) for \(describe($0))") } ?? name
        let texts = [check.cause, check.advice].compactMap { $0.map(PlainWords.text) }
        return head + (texts.isEmpty ? "" : ": " + texts.joined(separator: ": "))
    }

    /// The time in the largest unit of which there are at least two. So 90 minutes do not become 1 h.
    private static func describe(_ time: Duration) -> String {
        let seconds = max(time.components.seconds, 1)
        let units: [(length: Int64, name: String)] = [(86_400, tr("days")), (3600, tr("h")), (60, tr("min"))]
        let unit = units.first { seconds >= 2 * $0.length } ?? (1, tr("s"))
        return "\(seconds / unit.length) \(unit.name)"
    }
}
