// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// The actor of sockets, sessions, readers and workflows: everything but card cryptography and calls of C that block.
///
/// Its executor is one thread in `epoll_wait`, so a command is read, handled and answered without a change of threads.
@globalActor
package actor Loop {
    package static let shared = Loop()

    nonisolated let executor = EpollExecutor()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Prepares the process for tasks: starts the thread of the loop and the pool. To be called once, before the first
    /// task.
    /// - Throws: `SystemError` when no thread can be started.
    package static func start() throws(SystemError) {
        guard shared.executor.isStarted else { throw SystemError("pthread_create", EAGAIN) }
        try Pool.takeGlobalJobs()
    }

    /// Blocks the calling thread for ever; the end of `main`.
    package static func park() -> Never {
        while true { pause() }
    }

    /// CLOCK_MONOTONIC in milliseconds, read once in each round of the loop.
    @Loop package static var now: Int64 { shared.executor.microseconds / 1000 }

    // MARK: Descriptors

    /// Called when a descriptor is ready, with the EPOLL bits.
    package typealias Handler = @Loop (_ events: UInt32) -> Void

    @Loop private static var handlers: [UInt64: Handler] = [:]
    @Loop private static var nextToken: UInt64 = 1

    /// Watches a descriptor, level-triggered, until the registration is cancelled. The C function is epoll_ctl.
    /// - Throws: `SystemError` when the kernel refuses.
    @Loop package static func watch(
        _ descriptor: Int32,
        _ interest: Interest,
        _ handler: @escaping Handler
    ) throws(SystemError) -> Registration {
        let token = nextToken
        nextToken += 1
        guard shared.executor.control(CLINUX_EPOLL_ADD, descriptor, interest, token) else {
            throw SystemError("epoll_ctl")
        }
        handlers[token] = handler
        return Registration(descriptor: descriptor, token: token, interest: interest)
    }

    /// What to wait for.
    package struct Interest: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        package static let read = Interest(rawValue: CLINUX_EPOLLIN)
        package static let write = Interest(rawValue: CLINUX_EPOLLOUT)
    }

    /// Bits of `events`. Hang-up means both directions, or an error.
    package static let readable = CLINUX_EPOLLIN
    package static let writable = CLINUX_EPOLLOUT
    package static let hungUp = CLINUX_EPOLLHUP | CLINUX_EPOLLERR

    /// One watched descriptor. It does not own the descriptor; cancel before closing it.
    @Loop package final class Registration {
        private let descriptor: Int32
        private let token: UInt64
        private var interest: Interest
        private var isCancelled = false

        fileprivate init(descriptor: Int32, token: UInt64, interest: Interest) {
            (self.descriptor, self.token, self.interest) = (descriptor, token, interest)
        }

        /// Changes what to wait for. Hang-ups and errors are always reported, even without interest.
        package func change(_ interest: Interest) {
            guard !isCancelled, interest != self.interest else { return }
            self.interest = interest
            _ = Loop.shared.executor.control(CLINUX_EPOLL_MODIFY, descriptor, interest, token)
        }

        package func cancel() {
            guard !isCancelled else { return }
            isCancelled = true
            Loop.handlers[token] = nil
            _ = Loop.shared.executor.control(CLINUX_EPOLL_REMOVE, descriptor, [], token)
        }
    }

    /// Handles what one wait has brought: ready descriptors, then alarms that are due.
    @Loop static func handle(_ events: [clinux_epoll_event]) {
        for event in events { handlers[event.token]?(event.events) }
        ringAlarms()
    }
}

/// A failed call of the system: its name and errno in words.
package struct SystemError: Error, Sendable, CustomStringConvertible {
    package let call: String
    package let code: Int32

    package init(_ call: String, _ code: Int32 = errno) {
        (self.call, self.code) = (call, code)
    }

    package var description: String { "\(call): \(String(cString: strerror(code)))" }
}
