// SPDX-License-Identifier: GPL-3.0-or-later
import Host

/// The failures of one device, and when it is opened again without a request.
///
/// A device that was open is opened again at once, then after pauses that grow up to a second. The attempts continue
/// while its line or its USB device exists. A device that was never open may still be starting, or another program may
/// use it. It gets eight more attempts within half a minute, and then waits for a request.
struct DeviceFailure {
    enum Phase: Equatable {
        case open
        case waiting(until: ContinuousClock.Instant)
        case givenUp
    }

    /// Whether the device was open before it failed.
    let wasOpen: Bool
    private(set) var phase: Phase
    /// Failed attempts to open the device, and failures soon after it was opened.
    private(set) var count = 0
    /// What GET_HEALTH shows; nil where the check of the devices on USB shows it.
    var check: HealthCheck?

    private static let shortestPause = Duration.milliseconds(100)
    private static let longestPause = Duration.seconds(1)
    private static let maximumCount = 9

    /// The next attempt is due at once.
    init(wasOpen: Bool, check: HealthCheck? = nil, at now: ContinuousClock.Instant) {
        self.wasOpen = wasOpen
        self.check = check
        phase = .waiting(until: now)
    }

    /// nil: the device is opened again only on request, or is open.
    var nextAttempt: ContinuousClock.Instant? {
        if case .waiting(let time) = phase { time } else { nil }
    }

    func isDue(at now: ContinuousClock.Instant) -> Bool { nextAttempt.map { $0 <= now } ?? false }

    /// Whether the device fails again and again. Its failures count until it has worked for some time.
    var isUnsteady: Bool { wasOpen && phase != .givenUp }

    /// Whether to diagnose the fault, which takes up to a second. This is due after the ninth failure, and after the
    /// first one of a device that was never open.
    var needsDiagnosis: Bool { count == Self.maximumCount || !wasOpen && count == 1 }

    /// Counts one more failure, and sets the next attempt.
    mutating func add(at now: ContinuousClock.Instant) {
        let pause = Self.shortestPause * (1 << min(count, Self.maximumCount))
        count += 1
        if wasOpen {
            phase = .waiting(until: now + min(pause, Self.longestPause))
        } else {
            phase = count < Self.maximumCount ? .waiting(until: now + pause) : .givenUp
        }
    }

    mutating func open() { phase = .open }
    mutating func giveUp() { phase = .givenUp }
}
