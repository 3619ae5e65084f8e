// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Tells the service manager how the daemon is: the protocol of sd_notify(3).
///
/// A datagram with text to `$NOTIFY_SOCKET` is all there is to it, so libsystemd (and the four compression and
/// cryptography libraries it brings) stays out of the process.
package final class ServiceNotification: Sendable {
    private let descriptor: Int32
    private let address: UnixAddress?

    /// How often to call `watchdog()`: half of what the manager allows; nil when it does not watch.
    package let watchdogInterval: Duration?

    /// Does nothing when no manager listens.
    package init(environment: Environment = systemEnvironment) {
        let address = environment("NOTIFY_SOCKET").flatMap(UnixAddress.init(notifySocket:))
        descriptor = address == nil ? -1 : socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | closeOnExec | nonBlocking, 0)
        self.address = address
        let isOurs = environment("WATCHDOG_PID").map { $0 == String(getpid()) } ?? true
        let limit = environment("WATCHDOG_USEC").flatMap(Int64.init) ?? 0
        watchdogInterval = isOurs && limit > 1 ? .microseconds(limit / 2) : nil
    }

    /// The socket accepts connections. `status` is a line for `systemctl status`.
    package func ready(status: String) { send("READY=1\nSTATUS=\(Log.escaped(status))") }
    package func status(_ status: String) { send("STATUS=\(Log.escaped(status))") }
    /// The configuration is being read again; `ready` ends it. The manager wants to know since when.
    package func reloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        send("RELOADING=1\nMONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)")
    }
    package func stopping() { send("STOPPING=1") }
    package func watchdog() { send("WATCHDOG=1") }

    private func send(_ text: String) {
        guard descriptor >= 0, let address else { return }
        let bytes = Array(text.utf8)
        address.withPointer { pointer, length in
            while sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), pointer, length) < 0,
                errno == EINTR
            {}
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }
}
