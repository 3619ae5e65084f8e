// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Readers
import Synchronization
import Workers

/// What belongs to one card, one after the other, on a thread of its own: here it may block, and no other work waits.
///
/// It is also the executor of the actor that drives the card, so that cryptography and commands alternate without a
/// change of threads. Jobs of that actor that come after the thread's end run on `Pool`.
final class CardThread: SerialExecutor {
    private enum Work: Sendable {
        case block(@Sendable () -> Void)
        case job(UnownedJob)
    }

    private struct Queue {
        var work: [Work] = []
        /// Takes no more blocks.
        var isClosed = false
        /// The thread has ended.
        var isOver = false
        /// After that: `Pool` has been told of jobs.
        var isDraining = false
    }
    private let queue = Mutex(Queue())
    private let wake = DispatchSemaphore(value: 0)
    private let threadID = Atomic<UInt>(0)

    /// nil when the system has no thread left. `onEnd` runs last, on the thread.
    init?(name: String, onEnd: @escaping @Sendable () -> Void) {
        guard startThread(name, { [self] in loop(onEnd) }) else { return nil }
    }

    private func loop(_ onEnd: () -> Void) {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        while true {
            let (work, isOver) = queue.withLock { queue -> (Work?, Bool) in
                guard queue.work.isEmpty else { return (queue.work.removeFirst(), false) }
                queue.isOver = queue.isClosed
                return (nil, queue.isOver)
            }
            switch work {
            case .block(let block): block()
            case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            case nil where isOver:
                threadID.store(0, ordering: .relaxed)
                return onEnd()
            case nil: wake.wait()
            }
        }
    }

    /// Is the caller on this thread?
    var isCurrent: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isLate = queue.withLock { queue in
            queue.work.append(.job(job))
            defer { if queue.isOver { queue.isDraining = true } }
            return queue.isOver ? !queue.isDraining : nil
        }
        switch isLate {
        case nil: wake.signal()
        case true?: Pool.run { [self] in drain() }
        case false?: break
        }
    }

    /// Runs what has come after the end of the thread.
    private func drain() {
        while true {
            let work = queue.withLock { queue -> [Work] in
                defer { queue.work = [] }
                queue.isDraining = !queue.work.isEmpty
                return queue.work
            }
            if work.isEmpty { return }
            for case .job(let job) in work { job.runSynchronously(on: asUnownedSerialExecutor()) }
        }
    }

    /// Queues a block; false when the thread has ended or is about to.
    @discardableResult
    func async(_ block: @escaping @Sendable () -> Void) -> Bool {
        let isQueued = queue.withLock { queue in
            if !queue.isClosed { queue.work.append(.block(block)) }
            return !queue.isClosed
        }
        if isQueued { wake.signal() }
        return isQueued
    }

    /// Queues the last block; the thread ends after it. Does nothing the second time.
    func finish(_ last: @escaping @Sendable () -> Void) {
        queue.withLock { queue in
            if !queue.isClosed { queue.work.append(.block(last)) }
            queue.isClosed = true
        }
        wake.signal()
    }

    /// Runs a block and gives its result; nil when the thread has ended.
    func run<Value: Sendable>(_ block: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            if !async({ continuation.resume(returning: block()) }) { continuation.resume(returning: nil) }
        }
    }
}
