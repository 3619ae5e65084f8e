// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Testing

/// Alarms, and what has become of them.
@Loop private final class Bells {
    private(set) var rung: [String] = []
    private var alarms: [String: Loop.Alarm] = [:]
    private let waiters = Waiters()

    subscript(name: String) -> Loop.Alarm? { alarms[name] }

    func hang(_ name: String, _ body: @escaping @Loop (Bells) -> Void = { _ in }) {
        alarms[name] = Loop.Alarm { [unowned self] in
            rung.append(name)
            body(self)
            waiters.check()
        }
    }

    func takeDown(_ name: String) { alarms[name] = nil }

    func wait(for name: String) async { await waiters.wait { self.rung.contains(name) } }
}

@Suite("Alarms of the loop", .timeLimit(.minutes(5)))
@Loop struct AlarmTests {
    private let bells = Bells()

    @Test("they ring once each, in the order of their times")
    func order() async {
        for name in ["late", "early", "now"] { bells.hang(name) }
        bells["late"]?.set(after: 20)
        bells["early"]?.set(after: 5)
        bells["now"]?.set(after: 0)
        await bells.wait(for: "late")
        #expect(bells.rung == ["now", "early", "late"])
    }

    @Test("one that is set anew rings at the new time only")
    func moved() async {
        for name in ["moved", "fixed", "end"] { bells.hang(name) }
        bells["moved"]?.set(after: 0)
        bells["fixed"]?.set(after: 1)
        bells["moved"]?.set(after: 10)
        bells["end"]?.set(after: 11)
        await bells.wait(for: "end")
        #expect(bells.rung == ["fixed", "moved", "end"])
    }

    @Test("one that is cancelled, or gone, does not ring, not even when it is due already", arguments: [true, false])
    func cancelled(isGone: Bool) async {
        func silence(_ name: String, _ bells: Bells) {
            if isGone { bells.takeDown(name) } else { bells[name]?.cancel() }
        }
        bells.hang("one") { silence("other", $0) }
        bells.hang("other") { silence("one", $0) }
        bells.hang("end")
        for name in ["one", "other", "end"] { bells[name]?.set(after: 0) }
        await bells.wait(for: "end")
        #expect(bells.rung.count == 2)
    }

    @Test("one that sets itself again for now does not keep others from their turn")
    func again() async {
        var others = false
        bells.hang("again") { bells in
            if others { bells["end"]?.set(after: 0) } else { bells["again"]?.set(after: 0) }
        }
        bells.hang("end")
        bells["again"]?.set(after: 0)
        Task { @Loop in others = true }
        await bells.wait(for: "end")
        #expect(bells.rung.last == "end")
    }
}
