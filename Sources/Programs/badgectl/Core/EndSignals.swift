// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization

/// Receives signals by sigwait(3) on the main thread; all threads block them. So ordinary code, not a signal handler,
/// reacts to Ctrl-C.
enum EndSignals {
    private static let handler = Mutex<(@Sendable (Int32) -> Void)?>(nil)

    /// Sets what to do for a signal; nil: the default, which ends the program. When this returns, what was set before
    /// does not run any more. So `body` itself must not call this.
    static func handle(_ body: (@Sendable (Int32) -> Void)?) { handler.withLock { $0 = body } }

    /// Blocks the signals that `serve` waits for. Call this before any other thread starts.
    static func block() -> sigset_t {
        signal(SIGPIPE, SIG_IGN)
        var set = sigset_t()
        sigemptyset(&set)
        let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU]
        for number in ending + [SIGTSTP, SIGCONT] where !isIgnored(number) { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        return set
    }

    /// Whether the caller has the signal ignored, as nohup(1) does with SIGHUP.
    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        // Swift cannot compare functions: SIG_IGN is the address 1.
        return withUnsafeBytes(of: action.__sigaction_handler) { $0.loadUnaligned(as: UInt.self) } == 1
    }

    /// Waits for signals and handles them.
    static func serve(_ set: sigset_t) -> Never {
        while true {
            var (set, number) = (set, Int32(0))
            guard sigwait(&set, &number) == 0 else { continue }
            if number == SIGTSTP {
                // Ctrl-Z: the shell needs a terminal with echo.
                Console.suspend()
                kill(getpid(), SIGSTOP)
            } else if number == SIGCONT {
                // The shell may have changed the terminal, also after SIGSTOP.
                Console.resume()
            } else {
                handler.withLock { body in
                    guard let body else { Output.quit(.interrupted(number)) }
                    body(number)
                }
            }
        }
    }
}
