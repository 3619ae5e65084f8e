// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency

/// Switches adapters off and on again. Every adapter that is switched off is switched on again, even when the scan has
/// ended meanwhile. Attempts are repeated until one succeeds or the adapter is removed.
@Loop package final class PowerCycles {
    /// Milliseconds.
    package struct Timing: Sendable {
        /// First and longest pause between attempts to switch on; the pause is doubled each time.
        package var pause: Int64 = 1000
        package var longestPause: Int64 = 300_000

        package init() {}
    }

    private let timing: Timing
    /// Numbers of the adapters with a power cycle in progress.
    private var active: Set<Int> = []
    /// Those of them that may be switched off now.
    private var switchedOff: Set<Int> = []
    private var pauses: [Int: (alarm: Loop.Alarm, end: CheckedContinuation<Void, Never>)] = [:]
    private let waiters = Waiters()
    /// Called when the last power cycle has ended.
    package var onIdle: (@Loop () -> Void)?

    package init(timing: Timing = Timing()) { self.timing = timing }

    package var isActive: Bool { !active.isEmpty }

    /// Returns when no adapter is switched off any more. Ends pauses between attempts, so the next attempt is made at
    /// once.
    package func restorePower() async {
        for adapter in pauses.keys { endPause(adapter) }
        await waiters.wait { self.switchedOff.isEmpty }
    }

    /// Returns when no power cycle is in progress.
    package func waitUntilIdle() async { await waiters.wait { self.active.isEmpty } }

    /// Starts a power cycle, unless one is in progress for this adapter. With `mayDisconnect` the adapter is switched
    /// off even when other programs have connections. `isWanted` is called right before; false cancels the power cycle.
    package func begin(
        _ adapter: Int,
        _ power: any PowerSwitch,
        mayDisconnect: Bool,
        isWanted: @escaping @Loop () -> Bool
    ) {
        guard active.insert(adapter).inserted else { return }
        Task { @Loop in
            let isInUse = mayDisconnect ? false : await power.isInUse()
            if !isInUse, isWanted() { await cycle(adapter, power) }
            active.remove(adapter)
            if active.isEmpty { onIdle?() }
            waiters.check()
        }
    }

    private func cycle(_ adapter: Int, _ power: any PowerSwitch) async {
        switchedOff.insert(adapter)
        // The adapter may be off even when this fails, because an answer can be lost.
        _ = await power.setPower(false)
        var pause = timing.pause
        while await power.setPower(true) == .failed {
            await sleep(adapter, pause)
            pause = min(pause * 2, timing.longestPause)
        }
        switchedOff.remove(adapter)
        waiters.check()
    }

    private func sleep(_ adapter: Int, _ milliseconds: Int64) async {
        let alarm = Loop.Alarm { [weak self] in self?.endPause(adapter) }
        alarm.set(after: milliseconds)
        await withCheckedContinuation { pauses[adapter] = (alarm, $0) }
    }

    private func endPause(_ adapter: Int) { pauses.removeValue(forKey: adapter)?.end.resume() }
}

/// Switches the power of one adapter. Works without a scan, because the scan may end during a power cycle.
@Loop package protocol PowerSwitch: AnyObject {
    /// Whether other programs have connections over the adapter, or this cannot be determined.
    func isInUse() async -> Bool

    /// Switches the adapter on or off; returns when the system has answered.
    func setPower(_ isOn: Bool) async -> PowerOutcome
}

/// The result of `PowerSwitch.setPower`.
package enum PowerOutcome: Sendable {
    case done
    /// A later attempt may succeed, for example after the service has started.
    case failed
    /// The adapter was removed.
    case removed
}
