// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

/// Limits the time for an answer of another program, until it is cancelled.
@Loop final class AnswerLimit {
    /// In milliseconds. An alarm that is later than this was late because this process stood still.
    private static let stoodStill: Int64 = 3000

    private let time: Int64
    private var end: Int64
    private let onSilence: @Loop () -> Void
    private lazy var alarm = Loop.Alarm { [weak self] in self?.due(at: Loop.now) }

    /// Begins to count the time, in milliseconds.
    init(_ time: Int64, onSilence: @escaping @Loop () -> Void) {
        self.time = time
        self.onSilence = onSilence
        end = Loop.now + time
        alarm.set(after: time)
    }

    func cancel() { alarm.cancel() }

    /// Called when the time is over.
    func due(at now: Int64) {
        guard now - end > Self.stoodStill else { return onSilence() }
        // The other program may have stood still, too, or its answer waits in the socket. As in `Heartbeat`.
        end = now + time
        alarm.set(after: time)
    }
}
