// SPDX-License-Identifier: GPL-3.0-or-later

/// Who waits until something holds; whoever changes it looks after each change.
@Loop package final class Waiters {
    private var waiting: [(condition: () -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

    package nonisolated init() {}

    /// Returns when the condition holds.
    package func wait(until condition: @escaping () -> Bool) async {
        guard !condition() else { return }
        await withCheckedContinuation { waiting.append((condition, $0)) }
    }

    /// Something has changed.
    package func look() {
        var ready: [CheckedContinuation<Void, Never>] = []
        waiting.removeAll { waiter in
            guard waiter.condition() else { return false }
            ready.append(waiter.continuation)
            return true
        }
        for continuation in ready { continuation.resume() }
    }
}
