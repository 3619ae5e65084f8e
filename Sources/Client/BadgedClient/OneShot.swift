// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A value that comes once, for one waiter, whichever of the two is first.
final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Value, Never>)
        case filled(Value)
    }

    private let state = Mutex(State.empty)

    /// The first value counts; false for any later one.
    @discardableResult
    func fill(_ value: Value) -> Bool {
        let (isFirst, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
            switch state {
            case .empty:
                state = .filled(value)
                return (true, nil)
            case .waiting(let continuation):
                state = .filled(value)
                return (true, continuation)
            case .filled: return (false, nil)
            }
        }
        waiter?.resume(returning: value)
        return isFirst
    }

    /// Waits for the value; `cancelled` takes its place when the calling task is cancelled first.
    func value(whenCancelled cancelled: Value) async -> Value {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let value: Value? = state.withLock { state in
                    if case .filled(let value) = state { return value }
                    state = .waiting(continuation)
                    return nil
                }
                if let value { continuation.resume(returning: value) }
            }
        } onCancel: {
            fill(cancelled)
        }
    }
}
