// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// What the process does to itself at the start, before it holds anything worth stealing.
///
/// The crash reporter of the Swift runtime prints memory, too, but reads `SWIFT_BACKTRACE` before `main`: the unit
/// switches it off.
package enum ProcessHardening {
    /// No core dumps, no debugger of the same user, files of our own only, as many descriptors as the system allows; no
    /// lines of libdispatch in syslog about thread priorities that an ordinary user cannot have (it reads this late);
    /// memory that a client made large goes back to the system; GnuTLS, which comes with libcurl and is not used, does
    /// not prepare itself.
    ///
    /// Call it while there is one thread.
    package static func apply() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        _ = clinux_no_core_dumps()
        umask(0o077)
        setenv("LIBDISPATCH_LOG", "NO", 0)
        setenv("GNUTLS_NO_IMPLICIT_INIT", "1", 0)
        clinux_keep_heap_small()
        var files = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0 else { return }
        files.rlim_cur = files.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
        makeRoomForDescriptors(Int32(clamping: min(files.rlim_cur, 8192)))
    }

    /// Has the kernel's table of descriptors grown now: with more threads it waits 10 ms and more for all processors
    /// each time it grows, and the first client would have to wait with it.
    private static func makeRoomForDescriptors(_ count: Int32) {
        let copy = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, count - 1)
        if copy >= 0 { close(copy) }
    }
}
