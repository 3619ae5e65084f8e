// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization

/// Signals without handlers: they are blocked in every thread, and the main thread waits for them. So whatever runs
/// when Ctrl-C comes, ordinary code decides what to do about it.
enum Signals {
    private static let handler = Mutex<(@Sendable (Int32) -> Void)?>(nil)

    /// Takes the place of the default, which is to end the program.
    static func handle(_ body: @escaping @Sendable (Int32) -> Void) { handler.withLock { $0 = body } }

    /// To be called before any other thread starts.
    static func block() -> sigset_t {
        signal(SIGPIPE, SIG_IGN)
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP] where !isIgnored(number) { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        return set
    }

    /// Whether the caller wants it so, as nohup(1) does with SIGHUP.
    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        // SIG_IGN is the address 1.
        return withUnsafeBytes(of: action.__sigaction_handler) { $0.loadUnaligned(as: UInt.self) } == 1
    }

    /// Waits for signals for ever.
    static func serve(_ set: sigset_t) -> Never {
        while true {
            var (set, number) = (set, Int32(0))
            guard sigwait(&set, &number) == 0 else { continue }
            if number == SIGTSTP {
                // Ctrl-Z: the shell gets a terminal that echoes.
                Terminal.suspend()
                kill(getpid(), SIGSTOP)
                Terminal.resume()
            } else if let body = handler.withLock({ $0 }) {
                body(number)
            } else {
                Output.quit(.interrupted(number))
            }
        }
    }
}
