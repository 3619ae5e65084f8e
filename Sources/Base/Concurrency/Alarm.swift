// SPDX-License-Identifier: GPL-3.0-or-later

extension Loop {
    /// Calls back once, at a time that can be moved. While none is set nothing wakes up.
    ///
    /// Descriptors that are ready at the same time are handled first.
    @Loop package final class Alarm {
        fileprivate let body: @Loop () -> Void

        package init(_ body: @escaping @Loop () -> Void) { self.body = body }

        isolated deinit { cancel() }

        /// Sets the alarm to a time from now; an earlier setting is void.
        package func set(after milliseconds: Int64) {
            let limited = min(max(milliseconds, 0), 1 << 40)
            let time = shared.executor.microseconds + limited * 1000
            settings[ObjectIdentifier(self)] = Setting(time: time, alarm: self)
            updateDeadline()
        }

        package func cancel() {
            settings[ObjectIdentifier(self)] = nil
            updateDeadline()
        }
    }

    private struct Setting {
        /// Microseconds of CLOCK_MONOTONIC.
        let time: Int64
        weak let alarm: Alarm?
    }

    @Loop private static var settings: [ObjectIdentifier: Setting] = [:]

    @Loop private static func updateDeadline() {
        shared.executor.deadline = settings.values.map(\.time).min()
    }

    /// Rings the alarms that are due, the earliest first. An alarm that sets itself again waits for the next round.
    @Loop static func ringAlarms() {
        let now = shared.executor.microseconds
        let due = settings.filter { $0.value.time <= now }.sorted { $0.value.time < $1.value.time }
        // One that has rung may have cancelled or moved another.
        for (id, setting) in due where settings[id]?.time == setting.time {
            settings[id] = nil
            setting.alarm?.body()
        }
        updateDeadline()
    }
}
