// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// Hardens the process at its start, before it holds secrets.
///
/// The crash reporter of Swift also prints memory, but reads `SWIFT_BACKTRACE` before `main`. The unit switches the
/// crash reporter off.
package enum ProcessHardening {
    /// Hardens the process. Call this while the process has one thread.
    ///
    /// - Core dumps and debuggers of the same user are forbidden.
    /// - New files are readable by their owner only.
    /// - The process may open as many descriptors as the system allows.
    /// - A standard stream that is closed becomes /dev/null, so that no file or socket gets its number and lines of the log.
    package static func apply() {
        for stream in 0...2 as ClosedRange<Int32> where fcntl(stream, F_GETFD) < 0 { _ = open("/dev/null", O_RDWR) }
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        _ = clinux_no_core_dumps()
        umask(0o077)
        // libdispatch would write to syslog about thread priorities that an ordinary user may not set.
        setenv("LIBDISPATCH_LOG", "NO", 0)
        // For badged-network: libcurl loads GnuTLS, which nobody uses and which would read random numbers at its start.
        setenv("GNUTLS_NO_IMPLICIT_INIT", "1", 0)
        var files = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0 else { return }
        files.rlim_cur = files.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
    }
}

/// Landlock, with which a process drops its rights to files. landlock(7)
package enum Landlock {
    /// Whether the kernel has Landlock, and lets this process use it.
    package static var isSupported: Bool { clinux_landlock_version() > 0 }
}

/// The capability CAP_NET_ADMIN. The kernel requires it to open the Bluetooth management socket; capabilities(7).
package enum NetworkCapability {
    private static let number: UInt32 = 12

    package static var isHeld: Bool { clinux_has_capability(number) != 0 }

    /// Drops the capability for the calling thread and for threads that it starts later.
    ///
    /// Call this while the process has one thread. The C function is capset.
    /// - Returns: false if the kernel refuses.
    package static func giveUp() -> Bool { clinux_drop_capability(number) == 0 }
}
