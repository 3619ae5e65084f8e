// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Dispatch
import Glibc
import Host
import Synchronization
import Text

/// Runs jobs one after the other. A job may block its thread. As an executor it runs an actor that blocks, such as an
/// online authentication that waits for the network.
package final class JobQueue: SerialExecutor {
    /// A function that starts a named thread. It returns false if the system cannot start a thread.
    package typealias Start = (String, @escaping @Sendable () -> Void) -> Bool

    /// The result of a call of `serve`.
    package enum Turn: Sendable {
        case worked, timedOut
        /// The queue is closed and empty.
        case over
    }

    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    /// The thread that serves the queue; 0 before the first one.
    private let server = Atomic<UInt>(0)

    /// Makes a queue for a thread that calls `serve` again and again.
    package init() {}

    /// Makes a queue and starts a thread that serves the queue until its end.
    ///
    /// The result is nil if the system cannot start a thread.
    /// - Parameters:
    ///   - name: the name of the thread, of at most 15 bytes.
    ///   - start: starts threads; tests pass their own function.
    ///   - onEnd: runs last, on the thread.
    package convenience init?(
        thread name: String,
        start: Start = startThread,
        onEnd: @escaping @Sendable () -> Void = {}
    ) {
        self.init()
        let isStarted = start(name) { [self] in
            while serve() != .over {}
            onEnd()
        }
        guard isStarted else { return nil }
    }

    /// Waits for the next job until `deadline` and runs it. Only threads of the queue call this.
    package func serve(until deadline: DispatchTime = .distantFuture) -> Turn {
        server.store(UInt(pthread_self()), ordering: .relaxed)
        while true {
            let (job, isClosed) = state.withLock { state in
                (state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.isClosed)
            }
            if let job {
                job()
                return .worked
            }
            if isClosed { return .over }
            if wake.wait(timeout: deadline) == .timedOut { return .timedOut }
        }
    }

    /// Queues a job, unless the queue is closed.
    /// - Returns: false if the queue is closed.
    @discardableResult
    package func async(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isQueued = state.withLock { state in
            if !state.isClosed { state.jobs.append(job) }
            return !state.isClosed
        }
        if isQueued { wake.signal() }
        return isQueued
    }

    /// Queues a last job and closes the queue. Does nothing if the queue is closed.
    package func finish(_ last: @escaping @Sendable () -> Void = {}) {
        state.withLock { state in
            if !state.isClosed { state.jobs.append(last) }
            state.isClosed = true
        }
        wake.signal()
    }

    /// Runs a job and waits for its result.
    /// - Returns: nil if the queue is closed.
    package nonisolated(nonsending) func run<Value: Sendable>(_ job: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            if !async({ continuation.resume(returning: job()) }) { continuation.resume(returning: nil) }
        }
    }

    /// Runs a job and waits for its result, but for `grace` milliseconds only once the task is cancelled. The job goes on
    /// then.
    /// - Returns: nil if the queue is closed, or the result has not come in time.
    package nonisolated(nonsending) func run<Value: Sendable>(
        afterCancel grace: Int64,
        _ job: @escaping @Sendable () -> Value
    ) async -> Value? {
        let result = OneShot<Value?>()
        guard async({ result.fill(job()) }) else { return nil }
        return await withTaskCancellationHandler {
            await result.value
        } onCancel: {
            Task { @Loop in
                await Loop.sleep(milliseconds: grace)
                result.fill(nil)
            }
        }
    }

    /// Whether this is the thread of the queue.
    package var isCurrent: Bool { server.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Runs tasks that prefer it as jobs of the queue. What is left of a task when the queue is closed runs on the pool.
    package var taskExecutor: any TaskExecutor { QueuedTasks(queue: self) }

    /// Runs the next part of an actor, which closes the queue at its own end only.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}

private final class QueuedTasks: TaskExecutor {
    private let queue: JobQueue

    init(queue: JobQueue) { self.queue = queue }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let run: @Sendable () -> Void = { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        if !queue.async(run) { Pool.shared.add(for: nil, run) }
    }
}

/// Starts a detached thread that runs `body`. Tools such as top show the first 15 bytes of its name.
/// - Returns: false if the system cannot start a thread, which is logged once; then `body` does not run.
package func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
    let isStarted = Text.startThread {
        clinux_set_thread_name(name)
        body()
    }
    if let line = spawnLog.line(name, isStarted: isStarted) { Log.error(line) }
    return isStarted
}

private let spawnLog = SpawnLog()

/// The log line about a lack of threads: one until a spawn succeeds again, because clients can cause any number of
/// attempts.
struct SpawnLog: ~Copyable {
    private let isFailing = Atomic(false)

    /// The line about an attempt; nil if there is nothing new.
    func line(_ name: String, isStarted: Bool) -> Log.Message? {
        let wasFailing = isFailing.exchange(!isStarted, ordering: .relaxed)
        guard !isStarted, !wasFailing else { return nil }
        return "cannot spawn thread \(name): the limit of threads or memory is reached"
    }
}
