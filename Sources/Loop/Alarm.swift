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
            let limited = min(max(milliseconds, 0), 1 << 40)
            alarms[ObjectIdentifier(self)] = SetAlarm(alarm: self, time: microseconds + limited * 1000)
        }

        package func cancel() { alarms[ObjectIdentifier(self)] = nil }

        fileprivate func ring() { body() }
    }

    private struct SetAlarm {
        weak let alarm: Alarm?
        /// Microseconds of CLOCK_MONOTONIC.
        let time: Int64
    }

    /// There are few: one for each thing that waits.
    @Loop private static var alarms: [ObjectIdentifier: SetAlarm] = [:]

    /// Milliseconds until the next one; -1: none is set.
    @Loop static var patience: Int32 {
        guard let next = alarms.values.lazy.map(\.time).min() else { return -1 }
        // Rounded up: an alarm is late, not early.
        return Int32(clamping: max(0, (next - microseconds + 999) / 1000))
    }

    /// Rings those that are due.
    @Loop static func ring() {
        guard !alarms.isEmpty else { return }
        let now = microseconds
        for (id, entry) in alarms where entry.time <= now {
            // The one before may have moved it.
            guard let current = alarms[id], current.time <= now else { continue }
            alarms[id] = nil
            current.alarm?.ring()
        }
    }
}
