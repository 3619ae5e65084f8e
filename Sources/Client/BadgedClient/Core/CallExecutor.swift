// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Synchronization

/// Runs `async` calls for threads that wait for them, on threads of its own. So a caller that blocks a thread of the
/// cooperative pool does not keep its own call from running.
package final class CallExecutor: TaskExecutor {
    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // Only a serial queue gets a thread at once when the threads of the cooperative pool are blocked.
        DispatchQueue(label: "badged.calls").async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Runs a call whose caller does not wait.
    package func start(_ body: @escaping @Sendable () async -> Void) { Task(executorPreference: self) { await body() } }

    /// Runs a call and blocks the calling thread until it has ended.
    package func wait<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () async throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let outcome = Outcome<Value, Failure>()
        start {
            let result: Result<Value, Failure>
            do throws(Failure) { result = .success(try await body()) } catch { result = .failure(error) }
            outcome.result.withLock { $0 = result }
            outcome.done.signal()
        }
        while true {
            outcome.done.wait()
            if let result = outcome.result.withLock({ $0 }) { return try result.get() }
        }
    }

    /// What a call has returned to the thread that waits for it.
    private final class Outcome<Value: Sendable, Failure: Error>: Sendable {
        let result = Mutex<Result<Value, Failure>?>(nil)
        let done = DispatchSemaphore(value: 0)
    }
}
