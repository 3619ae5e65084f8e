// SPDX-License-Identifier: GPL-3.0-or-later
package import Dispatch
import Glibc
import Synchronization

/// What one thread does, one piece after the other: blocks, and the jobs of an actor whose executor this is. There they
/// may block, and an actor that drives a card computes and sends without a change of threads.
///
/// Jobs that come after the thread has turned to other things run on `Pool`.
package final class ThreadQueue: SerialExecutor {
    /// What a call of `serve` has brought.
    package enum Turn: Sendable { case worked, timedOut, over }

    private enum Work: Sendable {
        case block(@Sendable () -> Void)
        case job(UnownedJob)
    }

    private struct State {
        var work: [Work] = []
        /// Takes no more blocks.
        var isClosed = false
        /// The thread serves no more.
        var isOver = false
        /// After that: `Pool` has been told of jobs.
        var isDraining = false
    }
    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let threadID = Atomic<UInt>(0)

    package init() {}

    // MARK: The thread

    /// Does the next piece of work, for which it waits until `deadline`; to be called again and again, by one thread.
    /// `over`: the queue has been closed, and nothing is left in it.
    package func serve(until deadline: DispatchTime = .distantFuture) -> Turn {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        while true {
            let (work, isOver) = state.withLock { state -> (Work?, Bool) in
                guard state.work.isEmpty else { return (state.work.removeFirst(), false) }
                state.isOver = state.isClosed
                if state.isOver { threadID.store(0, ordering: .relaxed) }
                return (nil, state.isOver)
            }
            switch work {
            case .block(let block):
                block()
                return .worked
            case .job(let job):
                job.runSynchronously(on: asUnownedSerialExecutor())
                return .worked
            case nil where isOver: return .over
            case nil: if wake.wait(timeout: deadline) == .timedOut { return .timedOut }
            }
        }
    }

    // MARK: Everybody

    /// Is the caller on the thread?
    package var isCurrent: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isLate = state.withLock { state in
            state.work.append(.job(job))
            defer { if state.isOver { state.isDraining = true } }
            return state.isOver ? !state.isDraining : nil
        }
        switch isLate {
        case nil: wake.signal()
        case true?: Pool.run { [self] in drain() }
        case false?: break
        }
    }

    /// Runs what has come after the end.
    private func drain() {
        while true {
            let work = state.withLock { state -> [Work] in
                defer { state.work = [] }
                state.isDraining = !state.work.isEmpty
                return state.work
            }
            if work.isEmpty { return }
            for case .job(let job) in work { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }

    /// Queues a block; false when the queue has been closed.
    @discardableResult
    package func async(_ block: @escaping @Sendable () -> Void) -> Bool {
        let isQueued = state.withLock { state in
            if !state.isClosed { state.work.append(.block(block)) }
            return !state.isClosed
        }
        if isQueued { wake.signal() }
        return isQueued
    }

    /// Closes the queue, behind a last block. Does nothing the second time.
    package func finish(_ last: @escaping @Sendable () -> Void = {}) {
        state.withLock { state in
            if !state.isClosed { state.work.append(.block(last)) }
            state.isClosed = true
        }
        wake.signal()
    }

    /// Runs a block and gives its result, without a change of threads where there need be none; nil when the queue has
    /// been closed.
    package func run<Value: Sendable>(_ block: @escaping @Sendable () -> Value) async -> Value? {
        guard !isCurrent else { return block() }
        return await withCheckedContinuation { continuation in
            if !async({ continuation.resume(returning: block()) }) { continuation.resume(returning: nil) }
        }
    }
}
