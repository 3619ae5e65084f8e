// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host

/// Lets the process have no more descriptors, until `giveBack`. For a process of its own.
package struct Descriptors {
    private let before: rlimit

    package static func takeAll() throws -> Descriptors {
        var limit = rlimit()
        let next = dup(0)
        guard next >= 0, close(next) == 0, getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw SystemError("getrlimit")
        }
        let taken = Descriptors(before: limit)
        limit.rlim_cur = rlim_t(next)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw SystemError("setrlimit")
        }
        return taken
    }

    package func giveBack() {
        var limit = before
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
