// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Dispatch
import Glibc
import Synchronization

/// Runs the code that belongs to no executor, such as the actor of a card with its cryptography.
///
/// This pool replaces the pool of the Swift runtime, which wakes the process every second after its first job.
package final class Pool: Sendable {
    private struct State {
        /// Addresses of jobs of the Swift runtime.
        var jobs: [UInt] = []
        var threads = 0
        /// The number of threads that wait and have not been signalled yet.
        var idle = 0
    }

    private static let shared = Pool()

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let limit = max(2, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    private init() {}

    /// Takes the jobs of the pool of the Swift runtime from now on. Call this once, before the first task.
    ///
    /// `Task.sleep` still uses the pool of the runtime; use `Loop.sleep` in the daemon.
    /// - Throws: `SystemError` if no thread can be started.
    static func takeGlobalJobs() throws(SystemError) {
        // The first thread starts here, since a job cannot be refused later.
        shared.state.withLock { $0.threads = 1 }
        guard shared.startOne() else { throw SystemError("pthread_create", EAGAIN) }
        clinux_take_global_jobs { job in Pool.shared.add(UInt(bitPattern: job)) }
    }

    private func add(_ job: UInt) {
        enum Step { case wake, start, nothing }
        let step = state.withLock { state -> Step in
            state.jobs.append(job)
            if state.idle > 0 {
                state.idle -= 1
                return .wake
            }
            guard state.threads < limit else { return .nothing }
            state.threads += 1
            return .start
        }
        switch step {
        case .wake: wake.signal()
        case .start: if !startOne() { state.withLock { $0.threads -= 1 } }  // the other threads do the work
        case .nothing: break
        }
    }

    private func startOne() -> Bool {
        startThread("badged-pool") { [self] in
            while true { runNext() }
        }
    }

    private func runNext() {
        let job = state.withLock { state -> UInt? in
            guard state.jobs.isEmpty else { return state.jobs.removeFirst() }
            state.idle += 1
            return nil
        }
        if let job {
            clinux_run_global_job(UnsafeMutableRawPointer(bitPattern: job))
        } else {
            wake.wait()
        }
    }
}
