// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation

/// The threads of this process in /proc.
package struct Threads: Sendable {
    package struct Thread: Sendable, Equatable {
        package let id: String
        package let name: String
        /// The number of voluntary context switches, which is the number of wake-ups.
        package let switches: Int
    }

    package let list: [Thread]

    package static var now: Threads {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        let list = tasks.sorted().compactMap { id -> Thread? in
            guard let text = try? String(contentsOfFile: "/proc/self/task/\(id)/status", encoding: .utf8) else {
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

    /// Returns the threads that existed at both times and woke in between, with the number of wake-ups.
    package func wakeUps(until later: Threads) -> [(thread: Thread, count: Int)] {
        later.list.compactMap { now in
            guard let before = list.first(where: { $0.id == now.id && $0.name == now.name }) else { return nil }
            return now.switches > before.switches ? (now, now.switches - before.switches) : nil
        }
    }
}
