// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// The executor of an actor that computes, such as a card: its jobs run one after the other, on the threads of `Pool`.
package final class Worker: SerialExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// The pool has been told, and has not yet found that nothing is left.
        var isScheduled = false
    }

    private let state = Mutex(State())

    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isNew = state.withLock { state in
            state.jobs.append(job)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isNew { Pool.run { [self] in drain() } }
    }

    /// Runs what is queued, and what comes while it runs.
    private func drain() {
        while true {
            let jobs = state.withLock { state in
                defer { state.jobs = [] }
                state.isScheduled = !state.jobs.isEmpty
                return state.jobs
            }
            guard !jobs.isEmpty else { return }
            for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }
}
