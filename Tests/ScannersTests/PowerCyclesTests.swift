// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Scanners
import TestSupport
import Testing

/// The power of an adapter that does what the test has planned.
@Loop private final class PlannedPower: PowerSwitch {
    var inUse = false
    /// What becomes of the next wishes, first things first; then they succeed.
    var outcomes: [PowerOutcome] = []
    private(set) var wishes: [Bool] = []
    private let waiters = Waiters()

    func isInUse() async -> Bool { inUse }

    func setPower(_ isOn: Bool) async -> PowerOutcome {
        wishes.append(isOn)
        waiters.check()
        return outcomes.isEmpty ? .done : outcomes.removeFirst()
    }

    func wait(forWishes count: Int) async { await waiters.wait { self.wishes.count >= count } }
}

@Suite("Adapters that are switched off and on", .timeLimit(.minutes(5)))
struct PowerCyclesTests {
    @Test(
        "whatever becomes of switching off, on is tried until it succeeds or there is no adapter",
        arguments: [
            ([], [false, true]), ([.failed], [false, true]), ([.removed, .removed], [false, true]),
            ([.done, .failed, .failed], [false, true, true, true]), ([.done, .failed, .removed], [false, true, true]),
        ] as [([PowerOutcome], [Bool])]
    )
    @Loop func outcomes(outcomes: [PowerOutcome], wishes: [Bool]) async {
        var timing = PowerCycles.Timing()
        timing.pause = 1
        let (cycles, power) = (PowerCycles(timing: timing), PlannedPower())
        power.outcomes = outcomes
        cycles.begin(0, power, mayDisconnect: false) { true }
        #expect(cycles.isActive)
        await cycles.waitUntilIdle()
        #expect(power.wishes == wishes)
        #expect(!cycles.isActive)
    }

    @Test("not while others use the adapter, unless they may lose it; not when nobody wants it any more")
    @Loop func conditions() async {
        let (cycles, power) = (PowerCycles(), PlannedPower())
        power.inUse = true
        cycles.begin(0, power, mayDisconnect: false) { true }
        await cycles.waitUntilIdle()
        #expect(power.wishes.isEmpty)
        cycles.begin(0, power, mayDisconnect: true) { false }
        await cycles.waitUntilIdle()
        #expect(power.wishes.isEmpty)
        cycles.begin(0, power, mayDisconnect: true) { true }
        await cycles.waitUntilIdle()
        #expect(power.wishes == [false, true])
    }

    @Test("one at a time for each adapter")
    @Loop func oneAtATime() async {
        let (cycles, power, other) = (PowerCycles(), PlannedPower(), PlannedPower())
        cycles.begin(0, power, mayDisconnect: false) { true }
        cycles.begin(0, power, mayDisconnect: false) { true }
        cycles.begin(1, other, mayDisconnect: false) { true }
        await cycles.waitUntilIdle()
        #expect(power.wishes == [false, true])
        #expect(other.wishes == [false, true])
    }

    @Test("who waits for the end waits for no pause between two tries")
    @Loop func restorePower() async {
        var timing = PowerCycles.Timing()
        (timing.pause, timing.longestPause) = (3_600_000, 3_600_000)
        let (cycles, power) = (PowerCycles(timing: timing), PlannedPower())
        power.outcomes = [.done, .failed]
        cycles.begin(0, power, mayDisconnect: false) { true }
        await power.wait(forWishes: 2)
        await cycles.restorePower()
        #expect(power.wishes == [false, true, true])
    }
}
