// SPDX-License-Identifier: GPL-3.0-or-later
import CCurl
import Synchronization

/// Ends the transfers of one dialogue with servers from any thread, at once.
package final class HTTPCanceller: Sendable {
    private struct State {
        var isCancelled = false
        var isClosed = false
        var sessions: [CurlSession] = []
        /// Functions that end the waits for look-ups of names.
        var wakers: [Int: @Sendable () -> Void] = [:]
        var nextWaker = 0
        var cancelTime: ContinuousClock.Instant?
    }
    /// A `ccurl_session`. Unchecked: ccurl_wake, the only function called on it here, is thread-safe.
    private struct CurlSession: Equatable, @unchecked Sendable {
        let pointer: OpaquePointer
    }
    private let state = Mutex(State())

    package init() {}

    /// Whether transfers must end, and may not begin.
    package var isCancelled: Bool { state.withLock { $0.isCancelled || $0.isClosed } }

    /// Ends running transfers; new ones are refused until `reset`.
    package func cancel() {
        end { state in
            state.isCancelled = true
            if state.cancelTime == nil { state.cancelTime = .now }
        }
    }

    /// Ends running transfers; new ones are refused for good.
    package func close() { end { $0.isClosed = true } }

    /// Allows transfers again after `cancel`.
    package func reset() { state.withLock { $0.isCancelled = false } }

    /// The deadline of name look-ups: none, or shortly after the first `cancel`. `reset` does not remove it.
    var lookUpDeadline: ContinuousClock.Instant {
        let time = state.withLock { $0.cancelTime }
        return time.map { $0 + HostAddresses.timeoutAfterCancel } ?? .now + .seconds(86_400)
    }

    private func end(_ mark: (inout State) -> Void) {
        state.withLock { state in
            mark(&state)
            // Inside the lock, so that no session is freed meanwhile.
            for session in state.sessions { ccurl_wake(session.pointer) }
            for wake in state.wakers.values { wake() }
        }
    }

    func add(_ session: OpaquePointer) {
        let session = CurlSession(pointer: session)
        state.withLock { $0.sessions.append(session) }
    }

    func remove(_ session: OpaquePointer) {
        let session = CurlSession(pointer: session)
        state.withLock { state in state.sessions.removeAll { $0 == session } }
    }

    /// Adds a function that `cancel` and `close` call.
    func add(_ wake: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.nextWaker += 1
            state.wakers[state.nextWaker] = wake
            return state.nextWaker
        }
    }

    func remove(_ waker: Int) { state.withLock { $0.wakers[waker] = nil } }
}
