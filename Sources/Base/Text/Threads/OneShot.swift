// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A value that is set once and awaited by one task, in either order. The task waits on the executor on which it runs, so
/// it goes on there without a visit of the pool.
package final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case awaited(CheckedContinuation<Value, Never>)
        case filled(Value)
    }

    private let state = Mutex(State.empty)

    package init() {}

    /// Sets the value, unless a value is set already.
    /// - Returns: true if this call has set the value.
    @discardableResult
    package func fill(_ value: Value) -> Bool {
        let (isFirst, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
            switch state {
            case .empty:
                state = .filled(value)
                return (true, nil)
            case .awaited(let continuation):
                state = .filled(value)
                return (true, continuation)
            case .filled: return (false, nil)
            }
        }
        waiter?.resume(returning: value)
        return isFirst
    }

    package var isFilled: Bool {
        state.withLock { state in
            if case .filled = state { true } else { false }
        }
    }

    /// Waits for the value. If the calling task is cancelled first, `cancelled` becomes the value.
    package nonisolated(nonsending) func value(whenCancelled cancelled: Value) async -> Value {
        await withTaskCancellationHandler {
            await value
        } onCancel: {
            fill(cancelled)
        }
    }

    /// Waits for the value, also if the calling task is cancelled.
    package nonisolated(nonsending) var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let value: Value? = state.withLock { state in
                    if case .filled(let value) = state { return value }
                    state = .awaited(continuation)
                    return nil
                }
                if let value { continuation.resume(returning: value) }
            }
        }
    }
}
