// SPDX-License-Identifier: GPL-3.0-or-later

/// Tasks on the loop that wait until a condition holds; the owner calls `check` after each change.
@Loop package final class Waiters {
    private var waiting: [(condition: () -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

    package nonisolated init() {}

    /// Returns when the condition holds.
    package func wait(until condition: @escaping () -> Bool) async {
        guard !condition() else { return }
        await withCheckedContinuation { continuation in
            // In a task that prefers an executor, something may have changed since.
            guard !condition() else { return continuation.resume() }
            waiting.append((condition, continuation))
        }
    }

    /// Resumes the tasks whose condition holds now.
    package func check() {
        var ready: [CheckedContinuation<Void, Never>] = []
        waiting.removeAll { waiter in
            guard waiter.condition() else { return false }
            ready.append(waiter.continuation)
            return true
        }
        for continuation in ready { continuation.resume() }
    }
}

extension Task where Failure == Never {
    /// The value of the task. The task is cancelled together with the one that waits.
    package var cancellableValue: Success {
        get async {
            await withTaskCancellationHandler {
                await value
            } onCancel: {
                cancel()
            }
        }
    }
}
