// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// SIGTERM, SIGINT and SIGHUP as a descriptor for the event loop. The C function is signalfd.
package final class Signals: Sendable {
    package enum Signal: Sendable, Equatable {
        /// SIGTERM or SIGINT: end cleanly.
        case terminate
        /// SIGHUP: read the configuration again.
        case reload
    }

    /// Readable when a signal has arrived; non-blocking, closed with this object.
    package let descriptor: Int32

    /// Blocks the three signals and ignores SIGPIPE. Call this while the process has one thread.
    ///
    /// Threads inherit the signal mask, and a thread that does not block SIGTERM would end the process.
    package init() throws(StartError) {
        signal(SIGPIPE, SIG_IGN)
        let watched = [SIGTERM, SIGINT, SIGHUP]
        descriptor = clinux_signalfd(watched, Int32(watched.count))
        guard descriptor >= 0 else {
            throw StartError("cannot watch signals: \(errorText())", hint: "raise the limit of open files")
        }
    }

    /// Returns the next signal that has arrived, or nil.
    package func next() -> Signal? {
        switch clinux_signalfd_read(descriptor) {
        case SIGHUP: .reload
        case SIGTERM, SIGINT: .terminate
        default: nil
        }
    }

    deinit { close(descriptor) }
}
