// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// What the process does to itself at the start, before it holds anything worth stealing.
///
/// The crash reporter of the Swift runtime prints memory, too, but reads `SWIFT_BACKTRACE` before `main`: the unit
/// switches it off.
package enum ProcessHardening {
    /// Forbids core dumps and debuggers of the same user, makes new files private, and allows as many descriptors as the
    /// system does. Call it while there is one thread.
    package static func apply() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        _ = clinux_no_core_dumps()
        umask(0o077)
        // libdispatch would write to syslog about thread priorities that an ordinary user cannot have.
        setenv("LIBDISPATCH_LOG", "NO", 0)
        // libcurl loads GnuTLS, which is not used and would fetch random numbers.
        setenv("GNUTLS_NO_IMPLICIT_INIT", "1", 0)
        var files = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0 else { return }
        files.rlim_cur = files.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
    }
}
