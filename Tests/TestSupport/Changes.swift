// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// Notifies the tests that wait for a condition of each change.
package final class Changes: Sendable {
    private struct State {
        var count = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Makes all waiting tests check their conditions.
    package func notify() {
        let waiters = state.withLock { state in
            state.count += 1
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until `condition` holds, or the task is cancelled, as by the time limit of a test.
    package func wait(isolation: isolated (any Actor)? = #isolation, until condition: () -> Bool) async {
        while true {
            let seen = state.withLock { $0.count }
            if condition() || Task.isCancelled { return }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isNew = state.withLock { state in
                        if state.count == seen { state.waiters.append(continuation) }
                        return state.count != seen
                    }
                    if isNew { continuation.resume() }
                }
            } onCancel: {
                notify()
            }
        }
    }
}
