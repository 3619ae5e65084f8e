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

    /// Since when the radio listens; nil: it does not.
    private var listeningSince: Milliseconds?
    /// How long the radio had listened without an advertisement before `listeningSince`.
    private var listened: Milliseconds = 0
    /// The time of the last advertisement, or the beginning of the scan; nil: the radio has not listened yet.
    private var quietSince: Milliseconds?
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
        self.timeout = timeout
        self.hasReceived = hasReceived
    }

    /// Must be called when the system reports that the radio listens, or that it does not. The time in which it does not
    /// listen does not count. The time before counts, so that a state that flickers does not put off the timeout.
    package mutating func setListening(_ value: Bool, at now: Milliseconds) {
        guard value != isListening else { return }
        if let listeningSince { listened += now - listeningSince }
        listeningSince = value ? now : nil
        quietSince = quietSince ?? now
    }

    package var isListening: Bool { listeningSince != nil }

    /// Does not count this part of the time since the last advertisement.
    package mutating func forgive(_ time: Milliseconds) { listened -= time }

    /// Must be called when the scan has ended.
    package mutating func reset() { self = ScanWatchdog(timeout: timeout) }

    /// Must be called for every advertisement.
    /// - Returns: true when the advertisement ends a silence that `silentSince` has shown.
    package mutating func received(at now: Milliseconds) -> Bool {
        let wasSilent = silentSince != nil
        if listeningSince != nil { listeningSince = now }
        quietSince = now
        listened = 0
        hasReceived = true
        isSuspected = false
        silentSince = nil
        nextStep = .renew
        pause = Self.shortestPause
        return wasSilent
    }

    /// When `check` must be called; nil: the radio does not listen, which the scanner itself handles.
    package var nextCheck: Milliseconds? {
        if isSuspected { return nextStepTime }
        return listeningSince.map { $0 + timeout - listened }
    }

    /// - Returns: the step to take now, if any.
    package mutating func check(at now: Milliseconds) -> RecoveryStep? {
        guard let check = nextCheck, check <= now else { return nil }
        guard isSuspected else {
            isSuspected = true
            nextStepTime = now + Self.probeTime
            return .probe
        }
        if silentSince == nil { silentSince = quietSince }
        guard let step = nextStep else {
            nextStep = .renew
            nextStepTime = now + pause
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
