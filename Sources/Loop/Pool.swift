// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Dispatch
import Glibc
import Synchronization

/// Threads for everything that belongs to no actor with a thread of its own: card cryptography above all.
///
/// They take the place of the language's pool. That one, once it has had a job, wakes the process every second to look
/// after its threads; these sleep until there is work. What sleeps for a time (`Task.sleep`) still uses the other.
package final class Pool: Sendable {
    private struct State {
        /// Addresses of jobs, first come first served: the daemon has no work of different urgency.
        var jobs: [UInt] = []
        var threads = 0
        /// Threads that wait, and that nobody has called yet.
        var idle = 0
    }

    private static let shared = Pool()

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let limit = max(2, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    private init() {}

    /// To be called once, before the first task.
    package static func install() {
        _ = shared
        clinux_take_global_jobs { job in Pool.shared.put(UInt(bitPattern: job)) }
    }

    private enum Step { case nothing, wake, start }

    private func put(_ job: UInt) {
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
        case .nothing: break
        case .wake: wake.signal()
        case .start: start()
        }
    }

    private func start() {
        var thread = pthread_t()
        let code = pthread_create(
            &thread,
            nil,
            { _ in
                clinux_set_thread_name("badged-pool")
                Pool.shared.run()
            },
            nil
        )
        if code == 0 {
            pthread_detach(thread)
        } else {
            // The threads there are do the work; the next job tries again.
            state.withLock { $0.threads -= 1 }
        }
    }

    private func run() -> Never {
        while true {
            let job = state.withLock { state -> UInt? in
                if state.jobs.isEmpty {
                    state.idle += 1
                    return nil
                }
                return state.jobs.removeFirst()
            }
            if let job {
                clinux_run_global_job(UnsafeMutableRawPointer(bitPattern: job))
            } else {
                wake.wait()
            }
        }
    }
}
