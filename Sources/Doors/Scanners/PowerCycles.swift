// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency

/// Adapters that are switched off and on again. Who switches off owes to switch on: that is tried until it succeeds or the
/// adapter has gone, whatever becomes of the scan and of those who wanted it.
@Loop package final class PowerCycles {
    /// Milliseconds.
    package struct Timing: Sendable {
        /// First and longest pause before switching on is tried again; doubled each time.
        package var pause: Int64 = 1000
        package var longestPause: Int64 = 300_000

        package init() {}
    }

    private let timing: Timing
    /// Adapters by number, from the first question on.
    private var running: Set<Int> = []
    /// Those of them that may be off, by us.
    private var owed: Set<Int> = []
    private var pauses: [Int: (alarm: Loop.Alarm, end: CheckedContinuation<Void, Never>)] = [:]
    private let waiters = Waiters()
    /// Nothing is under way any more.
    package var onRest: (@Loop () -> Void)?

    package init(timing: Timing = Timing()) { self.timing = timing }

    package var areRunning: Bool { !running.isEmpty }

    /// Returns when whatever was switched off is on again, or gone.
    package func settle() async {
        // A pause is no reason to let anybody wait.
        for adapter in pauses.keys { endPause(adapter) }
        await waiters.wait { self.owed.isEmpty }
    }

    /// Returns when nothing is under way.
    package func rest() async { await waiters.wait { self.running.isEmpty } }

    /// Off and on again. Not while others use the adapter, unless they may lose it, and not when `isWanted` says no before
    /// anything has happened. One at a time for each adapter.
    package func begin(
        _ adapter: Int,
        _ power: any PowerSwitch,
        mayDisconnect: Bool,
        isWanted: @escaping @Loop () -> Bool
    ) {
        guard running.insert(adapter).inserted else { return }
        Task { @Loop in
            let isInUse = mayDisconnect ? false : await power.isInUse()
            if !isInUse, isWanted() { await cycle(adapter, power) }
            running.remove(adapter)
            if running.isEmpty { onRest?() }
            waiters.look()
        }
    }

    /// From the first command on it goes on to the end.
    private func cycle(_ adapter: Int, _ power: any PowerSwitch) async {
        owed.insert(adapter)
        // What has failed may have happened all the same, when only the answer is missing.
        _ = await power.turn(false)
        var pause = timing.pause
        while await power.turn(true) == .failed {
            await sleep(adapter, pause)
            pause = min(pause * 2, timing.longestPause)
        }
        owed.remove(adapter)
        waiters.look()
    }

    private func sleep(_ adapter: Int, _ milliseconds: Int64) async {
        let alarm = Loop.Alarm { [weak self] in self?.endPause(adapter) }
        alarm.set(after: milliseconds)
        await withCheckedContinuation { pauses[adapter] = (alarm, $0) }
    }

    private func endPause(_ adapter: Int) { pauses.removeValue(forKey: adapter)?.end.resume() }
}
