// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// A thread for one blocking job.
struct Worker {
    private final class Job: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private let thread: pthread_t

    init(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        pthread_create(
            &thread,
            nil,
            { raw in
                guard let raw else { return nil }
                Unmanaged<Job>.fromOpaque(raw).takeRetainedValue().body()
                return nil
            },
            Unmanaged.passRetained(Job(body)).toOpaque()
        )
        self.thread = thread
    }

    func join() { pthread_join(thread, nil) }
}
