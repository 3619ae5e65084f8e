// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// The result of blocking work, for a task that may stop waiting while the work goes on.
package final class Handover<Value: Sendable>: Sendable {
    private enum State {
        case pending
        case awaited(CheckedContinuation<Value?, Never>)
        case given(Value)
        /// Nobody waits any more, or the value has been handed over.
        case over
    }
    private let state = Mutex(State.pending)
    private let onAbandon: @Sendable () -> Void

    /// `onAbandon` runs when the waiting ends before the value has come.
    package init(onAbandon: @escaping @Sendable () -> Void = {}) { self.onAbandon = onAbandon }

    /// Hands the value over; false when nobody will come for it.
    package func give(_ value: Value) -> Bool {
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

    /// Waits for the value; nil when the task is cancelled first, or somebody calls `abandon`.
    package func value() async -> Value? {
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
            abandon()
        }
    }

    /// Nobody will come for a value.
    package var isOver: Bool {
        state.withLock { state in
            if case .over = state { true } else { false }
        }
    }

    /// Ends the waiting. A value that was given before is not lost.
    package func abandon() {
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
