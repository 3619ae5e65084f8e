// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders

/// The time, and one alarm. Tests bring one that they move by hand.
@Loop package protocol RadioClock: AnyObject {
    var now: Milliseconds { get }
    /// What the alarm does.
    var onAlarm: (@Loop () -> Void)? { get set }
    /// Sets the alarm, or takes it back.
    func setAlarm(_ time: Milliseconds?)
}

/// CLOCK_MONOTONIC, once in each round of the loop.
@Loop package final class MonotonicClock: RadioClock {
    package var onAlarm: (@Loop () -> Void)?
    private var alarm: Loop.Alarm?
    private var time: Milliseconds?

    package init() {
        alarm = Loop.Alarm { [weak self] in
            self?.time = nil
            self?.onAlarm?()
        }
    }

    package var now: Milliseconds { Loop.now }

    package func setAlarm(_ time: Milliseconds?) {
        guard time != self.time else { return }
        self.time = time
        if let time { alarm?.set(after: max(time - now, 1)) } else { alarm?.cancel() }
    }
}
