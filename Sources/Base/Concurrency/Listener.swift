// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
package import Host

/// A socket on the loop at which others arrive: connections or datagrams.
///
/// A connection for which the process or the host has no room stays in the queue of the kernel, so the loop would be
/// called again at once. So the listener pauses then, and tries again after a second: the shortage may pass without
/// anything that this process sees.
@Loop package final class Listener {
    private let socket: Int32
    private var registration: Loop.Registration?
    private lazy var retry = Loop.Alarm { [weak self] in self?.isReading = true }
    /// Milliseconds until the next attempt.
    private static let pause: Int64 = 1000

    /// Whether `ready` is called when somebody has arrived.
    package var isReading = true { didSet { registration?.change(isReading ? .read : []) } }

    /// Watches a listening socket, which does not block and which the caller still owns, until `cancel`.
    /// - Throws: `SystemError` if the loop cannot watch the socket.
    package init(_ socket: Int32, _ ready: @escaping @Loop (Listener) -> Void) throws(SystemError) {
        self.socket = socket
        registration = try Loop.watch(socket, .read) { [weak self] _ in
            if let self { ready(self) }
        }
    }

    isolated deinit { registration?.cancel() }

    /// Takes a connection, whose socket does not block and which the caller closes; nil if none waits. The C function is
    /// accept4.
    /// - Throws: `SystemError` if none can be taken now. The listener has paused.
    package func accept() throws(SystemError) -> Int32? {
        var connection: Int32
        repeat { connection = clinux_accept(socket) } while connection < 0 && [EINTR, ECONNABORTED].contains(errno)
        if connection >= 0 { return connection }
        guard errno != EAGAIN else { return nil }
        let failure = SystemError("accept")
        isReading = false
        retry.set(after: Self.pause)
        throw failure
    }

    package func cancel() {
        retry.cancel()
        registration?.cancel()
        registration = nil
    }
}
