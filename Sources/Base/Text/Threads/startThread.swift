// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Starts a detached thread that runs `body`.
///
/// The thread blocks all signals, because the main thread handles signals. Signals of its own faults are not blocked.
/// The C function is pthread_create.
/// - Returns: false if the system cannot start a thread; then `body` does not run.
package func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
    final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
    let argument = Unmanaged.passRetained(Body(body))

    // A new thread inherits the mask of the thread that starts it.
    var (blocked, before) = (sigset_t(), sigset_t())
    sigfillset(&blocked)
    for fault in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT] { sigdelset(&blocked, fault) }
    pthread_sigmask(SIG_SETMASK, &blocked, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }

    var thread = pthread_t()
    let code = pthread_create(
        &thread,
        nil,
        { argument in
            guard let argument else { return nil }
            Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
            return nil
        },
        argument.toOpaque()
    )
    guard code == 0 else {
        argument.release()
        return false
    }
    pthread_detach(thread)
    return true
}
