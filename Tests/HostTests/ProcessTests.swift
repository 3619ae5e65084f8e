// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Testing

@testable import Host

// These change the whole process, so each has one of its own.
@Suite("The daemon's process")
struct ProcessTests {
    @Test("signals come in order through the descriptor, and a closed pipe does not kill")
    func signals() async {
        await #expect(processExitsWith: .exitCode(7)) {
            let signals = try Signals()
            guard signals.next() == nil else { exit(1) }
            for (number, expected) in [(SIGHUP, Signals.Signal.reload), (SIGTERM, .terminate), (SIGINT, .terminate)] {
                // To this thread, which has it blocked: the other threads of the test are older than the mask.
                pthread_kill(pthread_self(), number)
                guard signals.next() == expected else { exit(2) }
            }
            guard signals.next() == nil else { exit(3) }
            var ends: [Int32] = [0, 0]
            guard pipe(&ends) == 0, close(ends[0]) == 0 else { exit(4) }
            guard write(ends[1], "x", 1) == -1, errno == EPIPE else { exit(5) }
            exit(7)
        }
    }

    @Test("no core file, no debugger, private files, all descriptors that the system allows")
    func hardening() async {
        await #expect(processExitsWith: .exitCode(7)) {
            ProcessHardening.apply()
            var (core, files) = (rlimit(), rlimit())
            getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &core)
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
            guard core.rlim_cur == 0, core.rlim_max == 0, files.rlim_cur == files.rlim_max else { exit(1) }
            guard umask(0) == 0o077 else { exit(2) }
            exit(7)
        }
    }
}
