// SPDX-License-Identifier: GPL-3.0-or-later
import CCurl
import Synchronization

/// Ends the transfers of an authentication from another thread, at once.
final class HTTPCanceller: Sendable {
    private struct State: @unchecked Sendable {
        var isCancelled = false
        var isClosed = false
        var sessions: [OpaquePointer] = []
    }
    private let state = Mutex(State())

    /// Transfers end, and do not begin.
    var isCancelled: Bool { state.withLock { $0.isCancelled || $0.isClosed } }

    /// Ends what runs, until `reset`.
    func cancel() { end { $0.isCancelled = true } }

    /// Ends what runs, for good.
    func close() { end { $0.isClosed = true } }

    /// Transfers may run again, unless it is closed.
    func reset() { state.withLock { $0.isCancelled = false } }

    private func end(_ mark: (inout State) -> Void) {
        state.withLock { state in
            mark(&state)
            // Under the lock, so that none is freed meanwhile.
            for session in state.sessions { ccurl_wake(session) }
        }
    }

    func use(_ session: OpaquePointer) {
        let session = Sending(session)
        state.withLock { $0.sessions.append(session.pointer) }
    }

    func forget(_ session: OpaquePointer) {
        let session = Sending(session)
        state.withLock { state in state.sessions.removeAll { $0 == session.pointer } }
    }

    /// The function that is called from any thread, ccurl_wake, is made for that.
    private struct Sending: @unchecked Sendable {
        let pointer: OpaquePointer
        init(_ pointer: OpaquePointer) { self.pointer = pointer }
    }
}
