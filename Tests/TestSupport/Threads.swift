// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation

/// The threads of a process in /proc.
package struct Threads: Sendable {
    package struct Thread: Sendable, Equatable {
        package let id: String
        package let name: String
        /// The number of voluntary context switches, which is the number of wake-ups.
        package let switches: Int
    }

    package let list: [Thread]

    /// The threads of this process.
    package static var now: Threads { of("self") }

    /// The threads of another process.
    package static func of(_ process: Int32) -> Threads { of(String(process)) }

    private static func of(_ process: String) -> Threads {
        let folder = "/proc/\(process)/task"
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let list = tasks.sorted().compactMap { id -> Thread? in
            guard let text = try? String(contentsOfFile: "\(folder)/\(id)/status", encoding: .utf8) else {
                return nil
            }
            var fields: [Substring: Substring] = [:]
            for line in text.split(separator: "\n") {
                guard let colon = line.firstIndex(of: ":") else { continue }
                fields[line[..<colon]] = line[line.index(after: colon)...].drop { $0 == "\t" || $0 == " " }
            }
            let switches = fields["voluntary_ctxt_switches"].flatMap { Int($0) }
            return Thread(id: id, name: String(fields["Name"] ?? ""), switches: switches ?? 0)
        }
        return Threads(list: list)
    }

    /// The threads of the PC/SC driver, without the fake cards and readers of the tests.
    package var ofDriver: [Thread] { list.filter { $0.name.hasPrefix("pcsc-") } }

    /// Watches threads for 2.5 seconds, at most four times, until none of them wakes up in this time.
    ///
    /// The time is what is tested: idle threads have no event to wait for.
    /// A thread that polls once a second or more often wakes up each time. A thread that only finishes earlier work, late
    /// on a busy machine, does not.
    /// - Returns: the wake-ups of the last period; empty for idle threads.
    package static func wakeUps(
        isolation: isolated (any Actor)? = #isolation,
        of threads: () -> [Thread]
    ) async throws -> [(thread: Thread, count: Int)] {
        var wakeUps: [(thread: Thread, count: Int)] = []
        for _ in 1...4 {
            let before = Threads(list: threads())
            try await Task.sleep(for: .milliseconds(2500))
            wakeUps = before.wakeUps(until: Threads(list: threads()))
            if wakeUps.isEmpty { break }
        }
        return wakeUps
    }

    /// Returns the threads that existed at both times and woke in between, with the number of wake-ups.
    package func wakeUps(until later: Threads) -> [(thread: Thread, count: Int)] {
        later.list.compactMap { now in
            guard let before = list.first(where: { $0.id == now.id && $0.name == now.name }) else { return nil }
            return now.switches > before.switches ? (now, now.switches - before.switches) : nil
        }
    }
}
