// SPDX-License-Identifier: GPL-3.0-or-later
package import Host

/// Tells the service manager that the loop goes on, as often as it wants to know. A loop that hangs tells nothing.
@Loop package final class SignsOfLife {
    private let service: ServiceNotification
    private let interval: Int64?
    private lazy var alarm = Loop.Alarm { [unowned self] in tell() }

    package nonisolated init(_ service: ServiceNotification) {
        self.service = service
        interval = service.watchdogInterval.map { max(1, Int64($0 / .milliseconds(1))) }
    }

    /// Tells it now and from now on. Without a manager that watches, nothing wakes up.
    package func tell() {
        guard let interval else { return }
        service.watchdog()
        alarm.set(after: interval)
    }
}
