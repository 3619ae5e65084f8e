// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// Reports the state of the daemon to the service manager, with the protocol of sd_notify(3).
///
/// The protocol is one datagram of text to `$NOTIFY_SOCKET`. It does not need libsystemd, which would load four
/// compression and cryptography libraries.
package final class ServiceNotification: Sendable {
    private let descriptor: Int32
    private let address: UnixAddress?

    /// The interval for `watchdog()`: half of the limit of the manager; nil if the manager does not watch.
    package let watchdogInterval: Duration?

    /// Reads the environment. Without a manager all calls do nothing.
    package init(environment: Environment = systemEnvironment) {
        let address = environment("NOTIFY_SOCKET").flatMap(UnixAddress.init(notifySocket:))
        descriptor = address == nil ? -1 : socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | closeOnExec | nonBlocking, 0)
        self.address = address
        let isOurs = environment("WATCHDOG_PID").map { $0 == String(getpid()) } ?? true
        let limit = environment("WATCHDOG_USEC").flatMap(Int64.init) ?? 0
        watchdogInterval = isOurs && limit > 1 ? .microseconds(limit / 2) : nil
    }

    /// Reports that the socket accepts connections. `status` is a line for `systemctl status`.
    package func ready(status: String) { send("READY=1\nSTATUS=\(Log.escaped(status))") }
    package func status(_ status: String) { send("STATUS=\(Log.escaped(status))") }
    /// Reports that the daemon reads its configuration again, until `ready`. The manager requires the start time.
    package func reloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        send("RELOADING=1\nMONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)")
    }
    package func stopping() { send("STOPPING=1") }
    package func watchdog() { send("WATCHDOG=1") }

    /// Leaves a descriptor in the store of the manager, which passes it to the main process of the service.
    /// - Returns: false without a manager that takes the descriptor.
    package func store(_ descriptor: Int32, name: String) -> Bool {
        guard self.descriptor >= 0, let address else { return false }
        let text = Array("FDSTORE=1\nFDNAME=\(name)".utf8)
        return address.withPointer { pointer, length in
            clinux_pass_descriptor_to(self.descriptor, descriptor, text, Int32(text.count), pointer, length) == 0
        }
    }

    /// Removes the descriptors with a name from the store of the manager.
    package func removeStored(name: String) { send("FDSTOREREMOVE=1\nFDNAME=\(name)") }

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
