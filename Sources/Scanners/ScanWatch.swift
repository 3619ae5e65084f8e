// SPDX-License-Identifier: GPL-3.0-or-later
package import DoorReaders

/// Notices that a scan has gone silent and says what to do about it; knows nothing of radios.
///
/// Silence is no proof: at night there may be nothing on the air. So the gentle steps are taken first, which do no harm,
/// and the hard one only where something was heard before.
package struct ScanWatch: Sendable {
    /// Silent for so long, something is suspected.
    package let patience: Milliseconds
    /// So long a step has to show that it has helped.
    private static let trial: Milliseconds = 4000
    /// After the last step: pauses until the ladder is climbed again.
    private static let shortestPause: Milliseconds = 5000
    private static let longestPause: Milliseconds = 300_000

    private var isListening = false
    private var lastSign: Milliseconds = 0
    private var hasHeard = false
    private var next: RecoveryStep? = .renew
    private var due: Milliseconds = 0
    private var pause = Self.shortestPause
    /// Since when nothing is heard; nil as long as nothing is suspected.
    package private(set) var silentSince: Milliseconds?

    package init(patience: Milliseconds = 20_000) { self.patience = patience }

    /// The radio listens from now on, or does not.
    package mutating func listening(_ value: Bool, at now: Milliseconds) {
        guard value != isListening else { return }
        isListening = value
        guard value else { return }
        // What a step of ours has restarted is still suspected.
        if silentSince == nil {
            lastSign = now
            due = now + patience
        }
    }

    /// The scan has ended.
    package mutating func reset() { self = ScanWatch(patience: patience) }

    /// True when the silence has ended with this.
    package mutating func heard(at now: Milliseconds) -> Bool {
        (lastSign, hasHeard) = (now, true)
        guard silentSince != nil else { return false }
        (silentSince, next, pause) = (nil, .renew, Self.shortestPause)
        due = now + patience
        return true
    }

    /// When `check` is due; nil: while the radio does not even say that it listens, others look after it.
    package var nextCheck: Milliseconds? {
        guard isListening || silentSince != nil else { return nil }
        return silentSince == nil ? max(due, lastSign + patience) : due
    }

    /// The step to take now, if any.
    package mutating func check(at now: Milliseconds) -> RecoveryStep? {
        guard let check = nextCheck, check <= now else { return nil }
        if silentSince == nil { silentSince = lastSign }
        guard let step = next else {
            (next, due) = (.renew, now + pause)
            pause = min(pause * 4, Self.longestPause)
            return nil
        }
        let following = RecoveryStep(rawValue: step.rawValue + 1)
        next = following == .powerCycle && !hasHeard ? nil : following
        due = now + Self.trial
        return step
    }

    /// The step could not be taken: no need to wait for its effect.
    package mutating func skipped(at now: Milliseconds) { due = now }
}
