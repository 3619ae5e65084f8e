// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

/// Shares the time of the loop between users: many clients of one user delay the commands of another user by one share.
@Loop final class Turns {
    /// The time for the clients of one user in each turn of the loop, in microseconds.
    private static let share: Int64 = 5000
    /// The time for one client until the other clients of its user follow.
    private static let step: Int64 = 1000

    private struct User {
        /// The turn of the loop in which `used` was spent.
        var turn: Int64 = 0
        var used: Int64 = 0
        /// The clients that wait for a share.
        var waiting: [Session] = []
    }

    private var users: [UInt32?: User] = [:]
    private var isScheduled = false

    /// Lets a client handle its lines now, or in a later turn when the share of its user is spent.
    func enter(_ session: Session) {
        guard !session.isWaiting else { return }
        if users[session.uid]?.waiting.isEmpty ?? true, rest(of: session.uid) > 0 {
            run(session)
        } else {
            enterLater(session)
        }
    }

    /// Lets a client handle its lines in a later turn.
    func enterLater(_ session: Session) {
        guard !session.isWaiting else { return }
        session.isWaiting = true
        users[session.uid, default: User()].waiting.append(session)
        schedule()
    }

    private func rest(of uid: UInt32?) -> Int64 {
        guard let user = users[uid], user.turn == Loop.turn else { return Self.share }
        return Self.share - user.used
    }

    private func run(_ session: Session) {
        let rest = rest(of: session.uid)
        let begin = Loop.clock
        let hasMore = session.handleLines(until: begin + min(rest, Self.step))
        users[session.uid, default: User()].turn = Loop.turn
        users[session.uid]?.used = Self.share - rest + max(1, Loop.clock - begin)
        if hasMore { enterLater(session) }
    }

    private func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        // The loop runs this after it has looked for events, which begins a new turn.
        Task { @Loop in round() }
    }

    private func round() {
        isScheduled = false
        for uid in users.keys {
            var waiting = users[uid]?.waiting[...] ?? []
            users[uid]?.waiting = []
            while rest(of: uid) > 0, let session = waiting.popFirst() {
                session.isWaiting = false
                run(session)
            }
            // Those that did not get their turn come before those that have more to do.
            users[uid]?.waiting.insert(contentsOf: waiting, at: 0)
            if users[uid]?.waiting.isEmpty ?? false { users[uid] = nil }
        }
        if users.values.contains(where: { !$0.waiting.isEmpty }) { schedule() }
    }
}
