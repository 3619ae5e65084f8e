// SPDX-License-Identifier: GPL-3.0-or-later
package import DoorReaders

/// Detects that a scan receives nothing any more and decides the recovery steps.
///
/// Silence is no proof of a fault: there may be no sender, or none that passes the filter. So the first step is a
/// probe, a scan without a filter. The next steps do not affect other programs. The power cycle is used only when an
/// advertisement was received before.
package struct ScanWatchdog: Sendable {
    /// Time without an advertisement after which the probe starts.
    package let timeout: Milliseconds
    /// Duration of the probe.
    package static let probeTime: Milliseconds = 2000
    /// Time after a step until the next one is taken.
    private static let stepTime: Milliseconds = 4000
    /// Pause after the last step until the steps are repeated; the pause grows each time.
    private static let shortestPause: Milliseconds = 5000
    private static let longestPause: Milliseconds = 300_000

    private var isListening = false
    private var lastReceived: Milliseconds = 0
    private var hasReceived: Bool
    /// The timeout has passed; the probe runs or has received nothing.
    package private(set) var isSuspected = false
    private var nextStep: RecoveryStep? = .renew
    private var nextStepTime: Milliseconds = 0
    private var pause = Self.shortestPause
    /// The time of the last advertisement, once the probe has failed; nil while the scan works.
    package private(set) var silentSince: Milliseconds?

    /// - Parameters:
    ///   - timeout: time without an advertisement after which the probe starts.
    ///   - hasReceived: advertisements are known to be on the air, because other adapters receive some.
    package init(timeout: Milliseconds = 20_000, hasReceived: Bool = false) {
        (self.timeout, self.hasReceived) = (timeout, hasReceived)
    }

    /// Must be called when the system reports that the radio listens, or that it does not.
    package mutating func setListening(_ value: Bool, at now: Milliseconds) {
        guard value != isListening else { return }
        isListening = value
        if value { restart(at: now) }
    }

    /// Starts the timeout again. Without effect during recovery, because recovery restarts the scan itself.
    package mutating func restart(at now: Milliseconds) {
        guard !isSuspected else { return }
        lastReceived = now
    }

    /// Must be called when the scan has ended.
    package mutating func reset() { self = ScanWatchdog(timeout: timeout) }

    /// Must be called for every advertisement.
    /// - Returns: true when the advertisement ends a silence that `silentSince` has shown.
    package mutating func received(at now: Milliseconds) -> Bool {
        let wasSilent = silentSince != nil
        (lastReceived, hasReceived) = (now, true)
        (isSuspected, silentSince, nextStep, pause) = (false, nil, .renew, Self.shortestPause)
        return wasSilent
    }

    /// When `check` must be called; nil: the radio does not listen, which the scanner itself handles.
    package var nextCheck: Milliseconds? {
        if isSuspected { return nextStepTime }
        return isListening ? lastReceived + timeout : nil
    }

    /// - Returns: the step to take now, if any.
    package mutating func check(at now: Milliseconds) -> RecoveryStep? {
        guard let check = nextCheck, check <= now else { return nil }
        guard isSuspected else {
            (isSuspected, nextStepTime) = (true, now + Self.probeTime)
            return .probe
        }
        if silentSince == nil { silentSince = lastReceived }
        guard let step = nextStep else {
            (nextStep, nextStepTime) = (.renew, now + pause)
            pause = min(pause * 4, Self.longestPause)
            return nil
        }
        let following = RecoveryStep(rawValue: step.rawValue + 1)
        nextStep = following == .powerCycle && !hasReceived ? nil : following
        nextStepTime = now + Self.stepTime
        return step
    }

    /// Must be called when the step of `check` was not possible; the next step is due at once.
    package mutating func skipStep(at now: Milliseconds) { nextStepTime = now }
}
