// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

extension Loop.Alarm {
    /// Sets the alarm to a time of `Loop.bootClock`; nil cancels it.
    func set(atBootTime deadline: Int64?) {
        guard let deadline else { return cancel() }
        set(at: Loop.clock + (deadline - Loop.bootClock) * 1000)
    }
}
