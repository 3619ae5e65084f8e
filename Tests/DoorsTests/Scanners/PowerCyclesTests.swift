// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Scanners
import TestSupport
import Testing

/// The power of an adapter with outcomes that the test sets.
@Loop private final class ScriptedPower: PowerSwitch {
    var inUse = false
    /// The outcomes of the next calls, in order; further calls succeed.
    var outcomes: [PowerOutcome] = []
    private(set) var calls: [Bool] = []
    private let waiters = Waiters()

    func isInUse() async -> Bool { inUse }

    func setPower(_ isOn: Bool) async -> PowerOutcome {
        calls.append(isOn)
        waiters.check()
        return outcomes.isEmpty ? .done : outcomes.removeFirst()
    }

    func wait(forCalls count: Int) async { await waiters.wait { self.calls.count >= count } }
}

@Suite("PowerCycles", .timeLimit(.minutes(5)))
struct PowerCyclesTests {
    @Test(
        "switching on is repeated until it succeeds or the adapter is removed, whatever the outcome of switching off",
        arguments: [
            ([], [false, true]), ([.failed], [false, true]), ([.removed, .removed], [false, true]),
            ([.done, .failed, .failed], [false, true, true, true]), ([.done, .failed, .removed], [false, true, true]),
        ] as [([PowerOutcome], [Bool])]
    )
    @Loop func outcomes(outcomes: [PowerOutcome], calls: [Bool]) async {
        var timing = PowerCycles.Timing()
        timing.pause = 1
        let (cycles, power) = (PowerCycles(timing: timing), ScriptedPower())
        power.outcomes = outcomes
        cycles.begin(0, power, mayDisconnect: false) { true }
        #expect(cycles.isActive)
        await cycles.waitUntilIdle()
        #expect(power.calls == calls)
        #expect(!cycles.isActive)
    }

    @Test(
        "an adapter with connections is switched off only where this is allowed, and none when the cycle is not wanted any more"
    )
    @Loop func conditions() async {
        let (cycles, power) = (PowerCycles(), ScriptedPower())
        power.inUse = true
        cycles.begin(0, power, mayDisconnect: false) { true }
        await cycles.waitUntilIdle()
        #expect(power.calls.isEmpty)
        cycles.begin(0, power, mayDisconnect: true) { false }
        await cycles.waitUntilIdle()
        #expect(power.calls.isEmpty)
        cycles.begin(0, power, mayDisconnect: true) { true }
        await cycles.waitUntilIdle()
        #expect(power.calls == [false, true])
    }

    @Test("each adapter has at most one power cycle at a time")
    @Loop func oneAtATime() async {
        let (cycles, power, other) = (PowerCycles(), ScriptedPower(), ScriptedPower())
        cycles.begin(0, power, mayDisconnect: false) { true }
        cycles.begin(0, power, mayDisconnect: false) { true }
        cycles.begin(1, other, mayDisconnect: false) { true }
        await cycles.waitUntilIdle()
        #expect(power.calls == [false, true])
        #expect(other.calls == [false, true])
    }

    @Test("restoring the power ends the pause between two attempts")
    @Loop func restorePower() async {
        var timing = PowerCycles.Timing()
        (timing.pause, timing.longestPause) = (3_600_000, 3_600_000)
        let (cycles, power) = (PowerCycles(timing: timing), ScriptedPower())
        power.outcomes = [.done, .failed]
        cycles.begin(0, power, mayDisconnect: false) { true }
        await power.wait(forCalls: 2)
        await cycles.restorePower()
        #expect(power.calls == [false, true, true])
    }
}
