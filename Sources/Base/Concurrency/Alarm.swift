// SPDX-License-Identifier: GPL-3.0-or-later
import Text

extension Loop {
    /// Calls a function once, at a time that can be changed. Without a set alarm the loop does not wake up.
    ///
    /// Descriptors that are ready at the same time are handled first.
    @Loop package final class Alarm {
        fileprivate let body: @Loop () -> Void

        package init(_ body: @escaping @Loop () -> Void) { self.body = body }

        isolated deinit { cancel() }

        /// Sets the alarm to a time from now. This replaces an earlier setting.
        package func set(after milliseconds: Int64) {
            let limited = min(max(milliseconds, 0), 1 << 40)
            set(at: shared.executor.microseconds + limited * 1000)
        }

        /// Sets the alarm to a time of CLOCK_MONOTONIC in microseconds. This replaces an earlier setting.
        package func set(at time: Int64) {
            settings[ObjectIdentifier(self)] = Setting(time: time, alarm: self)
            updateDeadline()
        }

        package func cancel() {
            settings[ObjectIdentifier(self)] = nil
            updateDeadline()
        }
    }

    /// Suspends the task for this time, or until the task is cancelled.
    ///
    /// `Task.sleep` would start the pool of the Swift runtime, which then wakes the process every second.
    @Loop package static func sleep(milliseconds: Int64) async {
        let end = OneShot<Void>()
        let alarm = Alarm { end.fill(()) }
        alarm.set(after: milliseconds)
        await end.value(whenCancelled: ())
        alarm.cancel()
    }

    /// A class, because copies of weak references are slow, and each search for the earliest time makes some.
    private final class Setting {
        /// Microseconds of CLOCK_MONOTONIC.
        let time: Int64
        weak let alarm: Alarm?

        init(time: Int64, alarm: Alarm) {
            self.time = time
            self.alarm = alarm
        }
    }

    @Loop private static var settings: [ObjectIdentifier: Setting] = [:]

    @Loop private static func updateDeadline() {
        shared.executor.deadline = settings.values.lazy.map(\.time).min()
    }

    /// Calls the alarms that are due, the earliest first. An alarm that is set again meanwhile waits for the next
    /// round.
    @Loop static func fireAlarms() {
        let now = shared.executor.microseconds
        guard let deadline = shared.executor.deadline, deadline <= now else { return }
        let due = settings.filter { $0.value.time <= now }.sorted { $0.value.time < $1.value.time }
        // A called alarm may have cancelled or changed another one.
        for (id, setting) in due where settings[id]?.time == setting.time {
            settings[id] = nil
            setting.alarm?.body()
        }
        updateDeadline()
    }
}
