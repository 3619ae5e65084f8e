// SPDX-License-Identifier: GPL-3.0-or-later

extension Loop {
    /// Calls back once, at a time that can be moved; while none is set nothing wakes up. It is the limit of the loop's own
    /// wait, so it costs no system call. What is ready at the same time is handled before.
    @Loop package final class Alarm {
        private let body: @Loop () -> Void

        package init(_ body: @escaping @Loop () -> Void) { self.body = body }

        isolated deinit { cancel() }

        /// In so many milliseconds from now; what was set before does not count any more.
        package func set(after milliseconds: Int64) {
            cancel()
            let limited = min(max(milliseconds, 0), 1 << 40)
            let time = microseconds + limited * 1000
            alarms.append(SetAlarm(id: ObjectIdentifier(self), time: time, round: round, alarm: self))
        }

        package func cancel() {
            let id = ObjectIdentifier(self)
            for index in alarms.indices where alarms[index].id == id {
                alarms.remove(at: index)
                return
            }
        }

        fileprivate func ring() { body() }
    }

    private struct SetAlarm {
        let id: ObjectIdentifier
        /// Microseconds of CLOCK_MONOTONIC.
        let time: Int64
        /// In which it was set.
        let round: UInt64
        weak let alarm: Alarm?
    }

    /// There are few: one for each thing that waits. So they are looked through, in each round; a dictionary would cost
    /// more code, and code that a processor has to fetch anew is what a round of the loop costs.
    @Loop private static var alarms: [SetAlarm] = []

    /// Counts how often was looked for alarms that are due.
    @Loop private static var round: UInt64 = 0

    /// Milliseconds until the next one; -1: none is set.
    @Loop static var patience: Int32 {
        guard !alarms.isEmpty else { return -1 }
        var next = Int64.max
        for index in alarms.indices { next = min(next, alarms[index].time) }
        // Rounded up: an alarm is late, not early.
        return Int32(clamping: max(0, (next - microseconds + 999) / 1000))
    }

    /// Rings those that are due, the earliest first. What one that rings sets waits for the next round.
    @Loop static func ring() {
        guard !alarms.isEmpty else { return }
        round += 1
        let now = microseconds
        while let index = due(at: now) {
            let alarm = alarms[index].alarm
            alarms.remove(at: index)
            alarm?.ring()
        }
    }

    @Loop private static func due(at now: Int64) -> Int? {
        var (first, earliest): (Int?, Int64) = (nil, .max)
        for index in alarms.indices where alarms[index].round < round {
            let time = alarms[index].time
            if time <= now, time < earliest { (first, earliest) = (index, time) }
        }
        return first
    }
}
