// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// A thread that runs the jobs of some actors, one after the other, and sleeps in the kernel in between.
///
/// Actors that compute (the cryptography of a card takes milliseconds) take one as their executor, so that neither the
/// event loop waits for them nor the language's own pool is ever started: from its first job on that pool wakes the
/// process every second.
package final class Worker: SerialExecutor, @unchecked Sendable {
    /// The worker for a new actor: all in turn, as many as there are processors, at most four.
    package static func next() -> Worker {
        pthread_mutex_lock(turn.mutex)
        defer { pthread_mutex_unlock(turn.mutex) }
        turn.count &+= 1
        return all[Int(turn.count % UInt(all.count))]
    }

    private static let all = (0..<max(1, min(4, sysconf(Int32(_SC_NPROCESSORS_ONLN))))).map { Worker(number: $0) }
    private static let turn = Turn()

    private final class Turn: @unchecked Sendable {
        let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        var count: UInt = 0
        init() { pthread_mutex_init(mutex, nil) }
    }

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wake = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [UnownedJob] = []
    private var isStarted = false
    private let number: Int

    private init(number: Int) {
        self.number = number
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(wake, nil)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        pthread_mutex_lock(mutex)
        jobs.append(job)
        if !isStarted { start() }
        pthread_cond_signal(wake)
        pthread_mutex_unlock(mutex)
    }

    /// The thread begins with the first job: a daemon without cards has none.
    private func start() {
        var thread = pthread_t()
        let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { raw in
            guard let raw else { return nil }
            let worker = Unmanaged<Worker>.fromOpaque(raw).takeUnretainedValue()
            clinux_set_thread_name("badged-card-\(worker.number)")
            worker.run()
        }
        // Workers live as long as the process, so the pointer stays good.
        isStarted = pthread_create(&thread, nil, entry, Unmanaged.passUnretained(self).toOpaque()) == 0
        if isStarted { pthread_detach(thread) }
    }

    private func run() -> Never {
        while true {
            pthread_mutex_lock(mutex)
            while jobs.isEmpty { pthread_cond_wait(wake, mutex) }
            let pending = jobs
            jobs = []
            pthread_mutex_unlock(mutex)
            for job in pending { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }
}
