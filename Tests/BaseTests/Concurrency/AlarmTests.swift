// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Testing
import Text

/// Named alarms and the order in which they fired.
@Loop private final class Alarms {
    private(set) var fired: [String] = []
    private var byName: [String: Loop.Alarm] = [:]
    private let waiters = Waiters()

    subscript(name: String) -> Loop.Alarm? { byName[name] }

    func add(_ name: String, _ body: @escaping @Loop (Alarms) -> Void = { _ in }) {
        byName[name] = Loop.Alarm { [unowned self] in
            fired.append(name)
            body(self)
            waiters.check()
        }
    }

    func remove(_ name: String) { byName[name] = nil }

    func wait(for name: String) async { await waiters.wait { self.fired.contains(name) } }
}

@Suite("Alarms of the loop", .timeLimit(.minutes(5)))
@Loop struct AlarmTests {
    private let alarms = Alarms()

    @Test("alarms fire once each, in the order of their times")
    func order() async {
        for name in ["late", "early", "now"] { alarms.add(name) }
        // So far apart that a pause of this thread in between does not change the order.
        alarms["late"]?.set(after: 1000)
        alarms["early"]?.set(after: 500)
        alarms["now"]?.set(after: 0)
        await alarms.wait(for: "late")
        #expect(alarms.fired == ["now", "early", "late"])
    }

    @Test("an alarm that is set again fires only at the new time")
    func moved() async {
        for name in ["moved", "fixed", "end"] { alarms.add(name) }
        alarms["moved"]?.set(after: 0)
        alarms["fixed"]?.set(after: 1)
        alarms["moved"]?.set(after: 10)
        alarms["end"]?.set(after: 11)
        await alarms.wait(for: "end")
        #expect(alarms.fired == ["fixed", "moved", "end"])
    }

    @Test(
        "an alarm that is cancelled or deallocated does not fire, even when it is already due",
        arguments: [true, false]
    )
    func cancelled(isGone: Bool) async {
        func end(_ name: String, _ alarms: Alarms) {
            if isGone { alarms.remove(name) } else { alarms[name]?.cancel() }
        }
        alarms.add("one") { end("other", $0) }
        alarms.add("other") { end("one", $0) }
        alarms.add("end")
        for name in ["one", "other", "end"] { alarms[name]?.set(after: 0) }
        await alarms.wait(for: "end")
        #expect(alarms.fired.count == 2)
    }

    @Test("an alarm that is set again in its handler does not delay other work")
    func again() async {
        var others = false
        alarms.add("again") { alarms in
            if others { alarms["end"]?.set(after: 0) } else { alarms["again"]?.set(after: 0) }
        }
        alarms.add("end")
        alarms["again"]?.set(after: 0)
        Task { @Loop in others = true }
        await alarms.wait(for: "end")
        #expect(alarms.fired.last == "end")
    }

    @Test("an alarm of the clock fires when its time has come, and one that is cancelled or set to later does not")
    func clock() async throws {
        let fired = OneShot<Void>()
        var early: [String] = []
        let now = Int(Loop.wallClock / 1000)
        let cancelled = try Loop.ClockAlarm { early.append("cancelled") }
        let moved = try Loop.ClockAlarm { early.append("moved") }
        let due = try Loop.ClockAlarm { fired.fill(()) }
        cancelled.set(at: now - 10)
        cancelled.cancel()
        moved.set(at: now - 10)
        moved.set(at: now + 86_400)
        due.set(at: now + 1)
        await fired.value(whenCancelled: ())
        #expect(Loop.wallClock / 1000 >= Int64(now + 1) && early == [])
        // A time that has passed is due at once.
        let passed = OneShot<Void>()
        let late = try Loop.ClockAlarm { passed.fill(()) }
        late.set(at: 1)
        await passed.value(whenCancelled: ())
        withExtendedLifetime((cancelled, moved)) {}
    }
}
