// SPDX-License-Identifier: GPL-3.0-or-later
import CCurl
import Synchronization

/// Ends the transfers of one authentication from any thread, at once.
final class HTTPCanceller: Sendable {
    private struct State: @unchecked Sendable {
        var isCancelled = false
        var isClosed = false
        /// `ccurl_session`s; ccurl_wake, the only function called on them here, is thread-safe.
        var sessions: [OpaquePointer] = []
    }
    private let state = Mutex(State())

    /// Whether transfers have to end, and may not begin.
    var isCancelled: Bool { state.withLock { $0.isCancelled || $0.isClosed } }

    /// Ends running transfers; new ones are refused until `reset`.
    func cancel() { end { $0.isCancelled = true } }

    /// Ends running transfers; new ones are refused for good.
    func close() { end { $0.isClosed = true } }

    /// Allows transfers again after `cancel`.
    func reset() { state.withLock { $0.isCancelled = false } }

    private func end(_ mark: (inout State) -> Void) {
        state.withLock { state in
            mark(&state)
            // Inside the lock, so that no session is freed meanwhile.
            for session in state.sessions { ccurl_wake(session) }
        }
    }

    func add(_ session: OpaquePointer) {
        let session = SendablePointer(session)
        state.withLock { $0.sessions.append(session.pointer) }
    }

    func remove(_ session: OpaquePointer) {
        let session = SendablePointer(session)
        state.withLock { state in state.sessions.removeAll { $0 == session.pointer } }
    }

    private struct SendablePointer: @unchecked Sendable {
        let pointer: OpaquePointer
        init(_ pointer: OpaquePointer) { self.pointer = pointer }
    }
}
