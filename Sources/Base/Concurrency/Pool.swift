// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Host
import Synchronization

/// Runs the code that belongs to no executor, such as the actor of a card with its cryptography.
///
/// This pool replaces the pool of the Swift runtime, which wakes the process every second after its first job.
package final class Pool: Sendable {
    private static let shared = Pool()

    private let queue = JobQueue()
    /// The jobs that wait or run, and the threads.
    private let counts = Mutex((jobs: 0, threads: 0))
    private let limit = max(2, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    private init() {}

    /// Takes the jobs of the pool of the Swift runtime from now on. Call this once, before the first task.
    ///
    /// `Task.sleep` still uses the pool of the runtime; use `Loop.sleep` in the daemon.
    /// - Throws: `SystemError` if no thread can be started, or if the runtime does not hand over its jobs.
    static func redirectGlobalJobs() throws(SystemError) {
        // The first thread starts here, since a job cannot be refused later.
        guard shared.startOne() else { throw SystemError("pthread_create", EAGAIN) }
        shared.counts.withLock { $0.threads = 1 }
        clinux_take_global_jobs { job in Pool.shared.add(UInt(bitPattern: job)) }
        // The hook is not an interface of the runtime. A job shows whether the hook is in force.
        Task.detached {}
        guard clinux_has_taken_global_job() else { throw SystemError("swift_task_enqueueGlobal_hook", ENOSYS) }
    }

    private func add(_ job: UInt) {
        let mustStart = counts.withLock { counts in
            counts.jobs += 1
            guard counts.jobs > counts.threads, counts.threads < limit else { return false }
            counts.threads += 1
            return true
        }
        queue.async { [self] in
            clinux_run_global_job(UnsafeMutableRawPointer(bitPattern: job))
            counts.withLock { $0.jobs -= 1 }
        }
        // Without a further thread the others do the work.
        if mustStart, !startOne() { counts.withLock { $0.threads -= 1 } }
    }

    private func startOne() -> Bool {
        startThread("badged-pool") { [queue] in
            while queue.serve() != .over {}
        }
    }
}
