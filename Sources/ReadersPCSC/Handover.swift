// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// The result of blocking work, for a task that stops waiting when it is cancelled while the work goes on.
final class Handover<Value: Sendable>: Sendable {
    private enum State {
        case pending
        case awaited(CheckedContinuation<Value?, Never>)
        case given(Value)
        /// Nobody waits any more, or the value has been handed over.
        case over
    }
    private let state = Mutex(State.pending)

    init() {}

    /// Hands the value over; false when nobody will come for it.
    func give(_ value: Value) -> Bool {
        let (waiting, isWanted) = state.withLock { state -> (CheckedContinuation<Value?, Never>?, Bool) in
            switch state {
            case .pending:
                state = .given(value)
                return (nil, true)
            case .awaited(let continuation):
                state = .over
                return (continuation, true)
            case .given, .over:
                return (nil, false)
            }
        }
        waiting?.resume(returning: value)
        return isWanted
    }

    /// Waits for the value; nil when the task is cancelled first.
    func value(onAbandon: @escaping @Sendable () -> Void = {}) async -> Value? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (isOver, value) = state.withLock { state -> (Bool, Value?) in
                    switch state {
                    case .pending:
                        state = .awaited(continuation)
                        return (false, nil)
                    case .given(let value):
                        state = .over
                        return (true, value)
                    case .awaited, .over:
                        return (true, nil)
                    }
                }
                if isOver { continuation.resume(returning: value) }
            }
        } onCancel: {
            let (waiting, isAbandoned) = state.withLock { state -> (CheckedContinuation<Value?, Never>?, Bool) in
                switch state {
                case .pending:
                    state = .over
                    return (nil, true)
                case .awaited(let continuation):
                    state = .over
                    return (continuation, true)
                case .given, .over:
                    return (nil, false)
                }
            }
            if isAbandoned { onAbandon() }
            waiting?.resume(returning: nil)
        }
    }
}
