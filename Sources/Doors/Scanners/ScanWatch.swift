// SPDX-License-Identifier: GPL-3.0-or-later
package import DoorReaders

/// Notices that a scan has gone silent and says what to do about it; knows nothing of radios.
///
/// Silence is no proof: at night there may be nothing on the air, or nothing that a filter lets through. So first the radio
/// listens without any filter; then the gentle steps are taken, which do no harm, and the hard one only where something
/// was heard before.
package struct ScanWatch: Sendable {
    /// Silent for so long, something is suspected.
    package let patience: Milliseconds
    /// So long it is listened to whatever there is.
    package static let probe: Milliseconds = 2000
    /// So long a step has to show that it has helped.
    private static let trial: Milliseconds = 4000
    /// After the last step: pauses until the ladder is climbed again.
    private static let shortestPause: Milliseconds = 5000
    private static let longestPause: Milliseconds = 300_000

    private var isListening = false
    private var lastSign: Milliseconds = 0
    private var hasHeard: Bool
    /// Nothing was heard for too long; the probe is made, or has heard nothing.
    package private(set) var isSuspected = false
    private var next: RecoveryStep? = .renew
    private var due: Milliseconds = 0
    private var pause = Self.shortestPause
    /// Since when nothing is heard; nil until the probe has shown it.
    package private(set) var silentSince: Milliseconds?

    /// - Parameters:
    ///   - patience: silent for so long, something is suspected.
    ///   - isOnAir: others prove that there is something to hear.
    package init(patience: Milliseconds = 20_000, isOnAir: Bool = false) {
        (self.patience, hasHeard) = (patience, isOnAir)
    }

    /// The radio listens from now on, or does not.
    package mutating func listening(_ value: Bool, at now: Milliseconds) {
        guard value != isListening else { return }
        isListening = value
        guard value else { return }
        // What a step of ours has restarted is still suspected.
        excuse(at: now)
    }

    /// Until now there was nothing to be heard.
    package mutating func excuse(at now: Milliseconds) {
        guard !isSuspected else { return }
        lastSign = now
        due = now + patience
    }

    /// The scan has ended.
    package mutating func reset() { self = ScanWatch(patience: patience) }

    /// True when the silence has ended with this.
    package mutating func heard(at now: Milliseconds) -> Bool {
        (lastSign, hasHeard) = (now, true)
        guard isSuspected else { return false }
        let wasSilent = silentSince != nil
        (isSuspected, silentSince, next, pause) = (false, nil, .renew, Self.shortestPause)
        due = now + patience
        return wasSilent
    }

    /// When `check` is due; nil: while the radio does not even say that it listens, others look after it.
    package var nextCheck: Milliseconds? {
        guard isListening || isSuspected else { return nil }
        return isSuspected ? due : max(due, lastSign + patience)
    }

    /// The step to take now, if any.
    package mutating func check(at now: Milliseconds) -> RecoveryStep? {
        guard let check = nextCheck, check <= now else { return nil }
        guard isSuspected else {
            (isSuspected, due) = (true, now + Self.probe)
            return .probe
        }
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
