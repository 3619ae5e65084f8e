// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Testing

@testable import Host

// Each test runs in a separate process because it changes process-wide state.
@Suite("The daemon's process")
struct ProcessTests {
    @Test("signals are read in order from the descriptor, and a write to a closed pipe does not end the process")
    func signals() async {
        await #expect(processExitsWith: .exitCode(7)) {
            let signals = try Signals()
            guard signals.next() == nil else { exit(1) }
            for (number, expected) in [(SIGHUP, Signals.Signal.reload), (SIGTERM, .terminate), (SIGINT, .terminate)] {
                // This thread blocks the signals. The other threads of the test started before the mask was set.
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

    @Test("hardening disables core files, sets the umask 077 and raises the descriptor limit to its maximum")
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
