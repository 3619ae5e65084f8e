// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
package import Host

extension Loop {
    /// Calls a function at a time of the clock of the host, and each time that somebody sets this clock. An alarm whose
    /// time has passed while the host slept is called when the host wakes up. Without a set alarm the loop does not wake
    /// up. timerfd_create(2)
    @Loop package final class ClockAlarm {
        private let timer: Int32
        private let body: @Loop () -> Void
        private var registration: Registration?

        /// - Throws: `SystemError` if no descriptor is left.
        package init(_ body: @escaping @Loop () -> Void) throws(SystemError) {
            self.body = body
            timer = clinux_clock_timer()
            guard timer >= 0 else { throw SystemError("timerfd_create") }
            registration = try Loop.watch(timer, .read) { [unowned self] _ in fire() }
        }

        isolated deinit {
            registration?.cancel()
            if timer >= 0 { close(timer) }
        }

        /// Sets the alarm to a time in seconds since 1970. This replaces an earlier setting. A time that has passed is due at
        /// once.
        package func set(at seconds: Int) { _ = clinux_set_clock_timer(timer, Int64(max(seconds, 1))) }

        package func cancel() { _ = clinux_set_clock_timer(timer, 0) }

        private func fire() {
            var count: UInt64 = 0
            let length = read(timer, &count, MemoryLayout<UInt64>.size)
            // ECANCELED: the clock was set.
            if length > 0 || errno == ECANCELED { body() }
        }
    }
}
