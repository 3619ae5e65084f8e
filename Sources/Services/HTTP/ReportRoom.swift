// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

/// The memory for reports of badged-network, which counts for the user of the dialogue. A report without room waits in
/// badged-network; the first one of each user has room always.
@Loop enum ReportRoom {
    /// The memory for a report while it is received and parsed, by its number of bytes.
    private static let factor = 4
    /// The bytes for one user, and for all users but root.
    static let maximumPerUser = 24 << 20
    private static let maximum = 96 << 20

    private static var held: [UInt32?: Int] = [:]
    private static var waiting: [NetworkJob] = []

    /// Room for one report, until this object ends.
    final class Share: Sendable {
        private let user: UInt32?
        private let bytes: Int

        fileprivate init(_ user: UInt32?, _ bytes: Int) {
            self.user = user
            self.bytes = bytes
        }

        deinit { Task { @Loop [user, bytes] in ReportRoom.release(bytes, of: user) } }
    }

    static func bytes(of user: UInt32?) -> Int { held[user, default: 0] }

    /// Takes room for a report of this number of bytes; nil if there is none now.
    static func take(_ count: Int, for user: UInt32?) -> Share? {
        let bytes = factor * count
        let own = held[user, default: 0]
        let others = held.reduce(0) { $1.key == 0 ? $0 : $0 + $1.value }
        let hasRoom = own + bytes <= maximumPerUser && (user == 0 || others + bytes <= maximum)
        guard own == 0 || hasRoom else { return nil }
        held[user] = own + bytes
        return Share(user, bytes)
    }

    /// Calls `resume` of the job when room is released.
    static func wait(_ job: NetworkJob) { waiting.append(job) }

    static func forget(_ job: NetworkJob) { waiting.removeAll { $0 === job } }

    private static func release(_ bytes: Int, of user: UInt32?) {
        let rest = held[user, default: 0] - bytes
        held[user] = rest > 0 ? rest : nil
        let jobs = waiting
        waiting = []
        for job in jobs { job.resume() }
    }
}
