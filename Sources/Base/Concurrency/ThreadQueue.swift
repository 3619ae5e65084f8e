// SPDX-License-Identifier: GPL-3.0-or-later
package import Dispatch
import Synchronization

/// Runs blocks of work on one thread, one after the other. A block of work may block the thread.
package final class ThreadQueue: Sendable {
    /// The result of a call of `serve`.
    package enum Turn: Sendable {
        case worked, timedOut
        /// The queue is closed and empty.
        case over
    }

    private struct State {
        var blocks: [@Sendable () -> Void] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)

    /// Makes a queue for a thread that calls `serve` again and again.
    package init() {}

    /// Makes a queue and starts a thread that serves the queue until its end. `onEnd` runs last, on the thread.
    ///
    /// The result is nil if the system cannot start a thread.
    package convenience init?(thread name: String, onEnd: @escaping @Sendable () -> Void) {
        self.init()
        let isStarted = startThread(name) { [self] in
            while serve() != .over {}
            onEnd()
        }
        guard isStarted else { return nil }
    }

    /// Waits for the next block until `deadline` and runs the block. Only the thread of the queue calls this.
    package func serve(until deadline: DispatchTime = .distantFuture) -> Turn {
        while true {
            let (block, isClosed) = state.withLock { state in
                (state.blocks.isEmpty ? nil : state.blocks.removeFirst(), state.isClosed)
            }
            if let block {
                block()
                return .worked
            }
            if isClosed { return .over }
            if wake.wait(timeout: deadline) == .timedOut { return .timedOut }
        }
    }

    /// Queues a block, unless the queue is closed.
    /// - Returns: false if the queue is closed.
    @discardableResult
    package func async(_ block: @escaping @Sendable () -> Void) -> Bool {
        let isQueued = state.withLock { state in
            if !state.isClosed { state.blocks.append(block) }
            return !state.isClosed
        }
        if isQueued { wake.signal() }
        return isQueued
    }

    /// Queues a last block and closes the queue. Does nothing if the queue is closed.
    package func finish(_ last: @escaping @Sendable () -> Void = {}) {
        state.withLock { state in
            if !state.isClosed { state.blocks.append(last) }
            state.isClosed = true
        }
        wake.signal()
    }

    /// Runs a block on the thread and waits for its result.
    /// - Returns: nil if the queue is closed.
    package func run<Value: Sendable>(_ block: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            if !async({ continuation.resume(returning: block()) }) { continuation.resume(returning: nil) }
        }
    }
}
