// SPDX-License-Identifier: GPL-3.0-or-later

/// Runs work once for all who ask meanwhile, one run after the other.
///
/// Those who ask during a run get the value of the next one, because the run may have missed what changed since its
/// beginning.
@Loop package final class SharedRun<Value: Sendable> {
    private var last: Task<Value, Never>?
    /// The run that has not begun.
    private var next: Task<Value, Never>?

    package nonisolated init() {}

    /// Returns the value of a run that begins after this call. It works for the daemon itself, since many users may wait.
    package func value(_ work: @escaping @Loop @Sendable () async -> Value) async -> Value {
        if let next { return await next.value }
        let before = last
        let run = Requester.$uid.withValue(nil) {
            Task { @Loop () async -> Value in
                _ = await before?.value
                self.next = nil
                return await work()
            }
        }
        last = run
        next = run
        return await run.value
    }
}
