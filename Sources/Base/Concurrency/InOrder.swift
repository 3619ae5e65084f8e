// SPDX-License-Identifier: GPL-3.0-or-later

/// Runs changes one after the other, each to its end, in the order of the calls: what is kept in memory and in the store
/// stays the same.
@Loop package final class InOrder {
    private var isBusy = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    package nonisolated init() {}

    /// Runs a change when those before it have ended. A change must not wait for another one.
    package func run<Value, Fault: Error>(
        _ change: @Loop () async throws(Fault) -> Value
    ) async throws(Fault) -> Value {
        await withCheckedContinuation { continuation in
            if isBusy {
                waiting.append(continuation)
            } else {
                isBusy = true
                continuation.resume()
            }
        }
        defer { if waiting.isEmpty { isBusy = false } else { waiting.removeFirst().resume() } }
        return try await change()
    }
}
