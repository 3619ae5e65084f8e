// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Dispatch
import Glibc
import Host
import Synchronization
import Text

/// Runs the code that belongs to no executor, such as the actor of a card with its cryptography. Each user has a share,
/// so that no work of one user keeps that of another waiting.
///
/// The users with jobs take turns on a few threads. When all of them are busy, a user none of whose jobs runs gets a
/// further thread. Threads without a job do not wake up.
package final class Pool: Sendable {
    static let shared = Pool(threads: max(2, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))))

    /// The users but root that get a further thread at the same time. Others wait for their turn.
    private static let maximumFurther = 64

    typealias Start = @Sendable (String, @escaping @Sendable () -> Void) -> Bool
    private typealias Job = @Sendable () -> Void

    private struct State {
        /// The jobs that wait, and the number of those that run, of users with jobs.
        var waiting: [UInt32?: ArraySlice<Job>] = [:]
        var running: [UInt32?: Int] = [:]
        /// The users with waiting jobs; the first one is next.
        var turns: [UInt32?] = []
        var threads = 0
        var idle = 0
    }

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    /// The number of threads that stay.
    private let staying: Int
    private let start: Start

    /// Makes a pool. Tests pass their own function that starts threads.
    init(threads: Int, start: @escaping Start = startThread) {
        staying = threads
        self.start = start
    }

    /// Queues a job of a user. nil: the daemon itself.
    func add(for user: UInt32?, _ job: @escaping @Sendable () -> Void) {
        let (isIdle, isMissing) = state.withLock { state in
            if state.waiting[user] == nil { state.turns.append(user) }
            state.waiting[user, default: []].append(job)
            guard place(of: state) != nil else { return (false, false) }
            let isIdle = state.idle > 0
            if isIdle { state.idle -= 1 } else { state.threads += 1 }
            return (isIdle, !isIdle)
        }
        // A thread that wakes up needs the lock.
        if isIdle { wake.signal() }
        if isMissing { startOne() }
    }

    /// Starts a thread that is counted already. Without it the others do the work.
    @discardableResult
    private func startOne() -> Bool {
        let isStarted = start("badged-pool") { [self] in serve() }
        if !isStarted { state.withLock { $0.threads -= 1 } }
        return isStarted
    }

    /// The place in `turns` of the user whose job may run next; nil: there is none.
    private func place(of state: State) -> Int? {
        let running = state.running.values.reduce(0, +)
        return state.turns.firstIndex { user in
            guard state.running[user] == nil else { return running < staying }
            return user == 0 || running < staying + Self.maximumFurther
        }
    }

    private func serve() {
        var last: (user: UInt32?, job: Job)?
        while true {
            let found = state.withLock { state -> (user: UInt32?, job: Job)? in
                if let last {
                    let rest = (state.running[last.user] ?? 1) - 1
                    state.running[last.user] = rest > 0 ? rest : nil
                }
                guard let place = place(of: state), let job = state.waiting[state.turns[place]]?.popFirst() else {
                    state.idle += 1
                    return nil
                }
                let user = state.turns.remove(at: place)
                if state.waiting[user]?.isEmpty ?? true { state.waiting[user] = nil } else { state.turns.append(user) }
                state.running[user, default: 0] += 1
                return (user, job)
            }
            last = found
            if let found { found.job() } else if !waitForWork() { return }
        }
    }

    /// Waits until there may be a job for an idle thread.
    /// - Returns: false if the thread is one too many.
    private func waitForWork() -> Bool {
        let isExtra = state.withLock { state in
            // An idle thread may have got a signal already, which it must follow.
            guard state.threads > staying, state.idle > 0 else { return false }
            state.threads -= 1
            state.idle -= 1
            return true
        }
        if !isExtra { wake.wait() }
        return !isExtra
    }

    // MARK: The pool of the daemon

    /// The share of a user, for `Task(executorPreference:)`. nil: the daemon itself.
    package static func share(of user: UInt32?) -> any TaskExecutor { PoolShare(pool: shared, user: user) }

    /// Runs work that takes time, on the share of the user for whom the task works. A task that is cancelled goes on at
    /// once with `cancelled`; nobody waits for the end of the work.
    package static func run<Value: Sendable, Failure: Error>(
        orIfCancelled cancelled: Failure,
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let end = OneShot<Result<Value, Failure>>()
        Task.detached(executorPreference: Requester.share) {
            guard !end.isFilled else { return }
            _ = end.fill(Result(catching: work))
        }
        return try await end.value(whenCancelled: .failure(cancelled)).get()
    }

    /// The same for one expression.
    package static func run<Value: Sendable, Failure: Error>(
        orIfCancelled cancelled: Failure,
        _ value: @autoclosure @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await run(orIfCancelled: cancelled) { () throws(Failure) in try value() }
    }

    /// Takes the jobs of the pool of the Swift runtime, which wakes the process every second after its first job. They
    /// come from tasks without a preference. Call this once, before the first task.
    ///
    /// `Task.sleep` still uses the pool of the runtime; use `Loop.sleep` in the daemon.
    /// - Throws: `SystemError` if no thread can be started, or if the runtime does not hand over its jobs.
    static func redirectGlobalJobs() throws(SystemError) {
        // The first thread starts here, since a job cannot be refused later.
        shared.state.withLock { $0.threads += 1 }
        guard shared.startOne() else { throw SystemError("pthread_create", EAGAIN) }
        clinux_take_global_jobs { job in
            let job = UInt(bitPattern: job)
            Pool.shared.add(for: nil) { clinux_run_global_job(UnsafeMutableRawPointer(bitPattern: job)) }
        }
        // The hook is not an interface of the runtime. A job shows whether the hook is in force.
        Task.detached {}
        guard clinux_has_taken_global_job() else { throw SystemError("swift_task_enqueueGlobal_hook", ENOSYS) }
    }
}

/// The share of one user. Actors without an executor and functions that are `@concurrent` run here in a task that
/// prefers it.
private final class PoolShare: TaskExecutor {
    private let pool: Pool
    private let user: UInt32?

    init(pool: Pool, user: UInt32?) {
        self.pool = pool
        self.user = user
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        pool.add(for: user) { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
