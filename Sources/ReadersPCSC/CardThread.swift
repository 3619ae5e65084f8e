// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Synchronization

/// Jobs of one card, one after the other, on a thread of their own: they may block, and the shared pool never does.
final class CardThread: Sendable {
    private struct Queue {
        var jobs: [@Sendable () -> Void] = []
        var isClosed = false
    }
    private let queue = Mutex(Queue())
    private let wake = DispatchSemaphore(value: 0)

    /// nil when the system has no thread left. `onEnd` runs last, on the thread.
    init?(name: String, onEnd: @escaping @Sendable () -> Void) {
        guard startThread(name, { [self] in loop(onEnd) }) else { return nil }
    }

    private func loop(_ onEnd: () -> Void) {
        while true {
            let (job, isClosed) = queue.withLock { ($0.jobs.isEmpty ? nil : $0.jobs.removeFirst(), $0.isClosed) }
            if let job {
                job()
            } else if isClosed {
                return onEnd()
            } else {
                wake.wait()
            }
        }
    }

    /// Queues a job; false when the thread has ended or is about to.
    @discardableResult
    func async(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isQueued = queue.withLock { queue in
            if !queue.isClosed { queue.jobs.append(job) }
            return !queue.isClosed
        }
        wake.signal()
        return isQueued
    }

    /// Queues the last job; the thread ends after it. Does nothing the second time.
    func finish(_ last: @escaping @Sendable () -> Void) {
        queue.withLock { queue in
            if !queue.isClosed { queue.jobs.append(last) }
            queue.isClosed = true
        }
        wake.signal()
    }

    /// Runs a job and gives its result; nil when the thread has ended.
    func run<Value: Sendable>(_ job: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            if !async({ continuation.resume(returning: job()) }) { continuation.resume(returning: nil) }
        }
    }
}
