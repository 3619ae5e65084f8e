// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

extension Loop {
    /// Calls back once, at a time that can be moved; while none is set nothing wakes up. The C function is
    /// timerfd_settime.
    @Loop package final class Alarm {
        private let descriptor: Int32
        private var registration: Registration?

        package init(_ body: @escaping @Loop () -> Void) throws(SystemError) {
            descriptor = clinux_timerfd()
            guard descriptor >= 0 else { throw SystemError("timerfd_create") }
            let timer = descriptor
            registration = try Loop.watch(timer, .read) { _ in
                var expirations: UInt64 = 0
                // What was moved in this very moment has not expired.
                guard read(timer, &expirations, 8) == 8 else { return }
                _ = clinux_timerfd_set(timer, 0)
                body()
            }
        }

        isolated deinit {
            registration?.cancel()
            close(descriptor)
        }

        /// In so many milliseconds from now; what was set before does not count any more.
        package func set(after milliseconds: Int64) {
            let limited = UInt64(min(max(milliseconds, 0), 1 << 40))
            _ = clinux_timerfd_set(descriptor, max(limited * 1000, 1))
        }

        package func cancel() { _ = clinux_timerfd_set(descriptor, 0) }
    }
}
