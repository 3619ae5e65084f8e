// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Synchronization

/// The thread of one online authentication, on which its actor runs and may wait for the network. It ends with the actor.
///
/// The language's own pool never waits for a server, and an idle daemon has no such thread.
package final class NetworkThread: SerialExecutor, @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wake = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [UnownedJob] = []
    private var isStarted = false
    private var isFinished = false

    package init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(wake, nil)
    }

    deinit {
        pthread_cond_destroy(wake)
        pthread_mutex_destroy(mutex)
        wake.deallocate()
        mutex.deallocate()
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        pthread_mutex_lock(mutex)
        jobs.append(job)
        if !isStarted { start() }
        pthread_cond_signal(wake)
        pthread_mutex_unlock(mutex)
    }

    /// Lets the thread end when nothing is left to do.
    package func finish() {
        pthread_mutex_lock(mutex)
        isFinished = true
        pthread_cond_signal(wake)
        pthread_mutex_unlock(mutex)
    }

    private func start() {
        let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { raw in
            guard let raw else { return nil }
            clinux_set_thread_name("badged-web")
            Unmanaged<NetworkThread>.fromOpaque(raw).takeRetainedValue().run()
            return nil
        }
        let retained = Unmanaged.passRetained(self)
        isStarted = clinux_start_thread(entry, retained.toOpaque()) == 0
        if !isStarted { retained.release() }
    }

    private func run() {
        while true {
            pthread_mutex_lock(mutex)
            while jobs.isEmpty, !isFinished { pthread_cond_wait(wake, mutex) }
            let pending = jobs
            jobs = []
            pthread_mutex_unlock(mutex)
            if pending.isEmpty { return }
            for job in pending { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }
}
