// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Synchronization

/// Executes an actor that may block, such as an online authentication that waits for the network, on one thread.
package final class NetworkThread: SerialExecutor {
    /// A function that starts a named thread. It returns false if the system cannot start a thread.
    package typealias Start = (String, @escaping @Sendable () -> Void) -> Bool

    private struct State {
        var jobs: [UnownedJob] = []
        var isFinished = false
    }

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)

    /// Starts the thread.
    /// - Parameter start: starts threads; tests pass their own function.
    /// - Throws: `SystemError` if the system cannot start a thread.
    package init(start: Start = startThread) throws(SystemError) {
        let isStarted = start("badged-web") { [self] in
            while runNext() {}
        }
        guard isStarted else { throw SystemError("pthread_create", EAGAIN) }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
        wake.signal()
    }

    /// Ends the thread after the jobs that are queued.
    package func finish() {
        state.withLock { $0.isFinished = true }
        wake.signal()
    }

    private func runNext() -> Bool {
        wake.wait()
        let (job, isFinished) = state.withLock { ($0.jobs.isEmpty ? nil : $0.jobs.removeFirst(), $0.isFinished) }
        job?.runSynchronously(on: asUnownedSerialExecutor())
        return job != nil || !isFinished
    }
}
