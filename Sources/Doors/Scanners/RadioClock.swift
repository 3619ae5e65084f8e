// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders

/// The time and one alarm. Tests use a clock that they advance.
@Loop package protocol RadioClock: AnyObject {
    var now: Milliseconds { get }
    /// Called when the alarm is due.
    var onAlarm: (@Loop () -> Void)? { get set }
    /// Sets the alarm in place of the previous one; nil cancels the alarm.
    func setAlarm(_ time: Milliseconds?)
}

/// CLOCK_MONOTONIC, read once per round of the loop.
@Loop package final class MonotonicClock: RadioClock {
    package var onAlarm: (@Loop () -> Void)?
    private var alarm: Loop.Alarm?

    package init() { alarm = Loop.Alarm { [weak self] in self?.onAlarm?() } }

    package var now: Milliseconds { Loop.now }

    package func setAlarm(_ time: Milliseconds?) {
        if let time { alarm?.set(after: max(time - now, 1)) } else { alarm?.cancel() }
    }
}
