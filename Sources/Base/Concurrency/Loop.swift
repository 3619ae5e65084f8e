// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
package import Host

/// The actor that runs all code except card cryptography and blocking C calls: sockets, sessions, readers, workflows.
///
/// Its executor is one thread in `epoll_wait`, so a command is read, handled and answered without a change of threads.
@globalActor
package actor Loop {
    package static let shared = Loop()

    nonisolated let executor = EpollExecutor()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Starts the thread of the loop and the pool. Call this once, before the first task.
    /// - Throws: `SystemError` if no descriptors are left, or no thread can be started.
    package static func start() throws(SystemError) {
        if let failure = shared.executor.failure { throw failure }
        try Pool.redirectGlobalJobs()
    }

    /// Blocks the calling thread for ever, at the end of `main`.
    package static func park() -> Never {
        // Not pause(2), which a confined program may not call.
        while true { poll(nil, 0, -1) }
    }

    /// The time of CLOCK_MONOTONIC in milliseconds, read once in each round of the loop.
    @Loop package static var now: Int64 { shared.executor.microseconds / 1000 }

    /// Runs `body` at once. For functions of C libraries that call back on the thread of the loop.
    package static func assumed<Result: Sendable>(_ body: @Loop () -> Result) -> Result {
        shared.preconditionIsolated()
        // As MainActor.assumeIsolated of the standard library does.
        // The compiler counts the characters of the path here before -file-prefix-map, so the program would depend on the folder.
        #sourceLocation(file:"Loop.assumed",line:38)
        return withoutActuallyEscaping(body) { unsafeBitCast($0, to: (() -> Result).self)() }
        #sourceLocation()
    }

    /// The time of CLOCK_MONOTONIC in microseconds at the beginning of this round of the loop.
    @Loop package static var turn: Int64 { shared.executor.microseconds }

    /// The time of CLOCK_MONOTONIC in microseconds, read now. The C function is clock_gettime.
    package static var clock: Int64 {
        var clock = timespec()
        clock_gettime(CLOCK_MONOTONIC, &clock)
        return Int64(clock.tv_sec) * 1_000_000 + Int64(clock.tv_nsec) / 1000
    }

    /// The time of CLOCK_BOOTTIME in milliseconds since the start of the machine, read now. Nobody can set it, and it
    /// goes on while the machine sleeps.
    package static var bootClock: Int64 {
        var clock = timespec()
        clock_gettime(CLOCK_BOOTTIME, &clock)
        return Int64(clock.tv_sec) * 1000 + Int64(clock.tv_nsec) / 1_000_000
    }

    /// The time of CLOCK_REALTIME in milliseconds since 1970. It may be wrong and may jump; for people only.
    package static var wallClock: Int64 {
        var clock = timespec()
        clock_gettime(CLOCK_REALTIME, &clock)
        return Int64(clock.tv_sec) * 1000 + Int64(clock.tv_nsec) / 1_000_000
    }

    // MARK: Descriptors

    /// A function that is called when a descriptor is ready, with the EPOLL bits.
    package typealias Handler = @Loop (_ events: UInt32) -> Void

    @Loop private static var handlers: [UInt64: Handler] = [:]
    @Loop private static var nextToken: UInt64 = 1

    /// Watches a descriptor, level-triggered unless `interest` says otherwise, until the registration is cancelled. The C function is epoll_ctl.
    /// - Throws: `SystemError` if the kernel refuses.
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

    /// The events to wait for.
    package struct Interest: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        package static let read = Interest(rawValue: CLINUX_EPOLLIN)
        package static let write = Interest(rawValue: CLINUX_EPOLLOUT)
        /// Edge-triggered: what another program handles is reported once.
        package static let once = Interest(rawValue: CLINUX_EPOLLET)
    }

    /// The bits of `events`. Hang-up means that both directions are closed, or an error.
    package static let readable = CLINUX_EPOLLIN
    package static let writable = CLINUX_EPOLLOUT
    package static let hungUp = CLINUX_EPOLLHUP | CLINUX_EPOLLERR

    /// One watched descriptor. The registration does not own the descriptor; cancel it before you close the descriptor.
    @Loop package final class Registration {
        private let descriptor: Int32
        private let token: UInt64
        private var interest: Interest
        private var isCancelled = false

        fileprivate init(descriptor: Int32, token: UInt64, interest: Interest) {
            self.descriptor = descriptor
            self.token = token
            self.interest = interest
        }

        /// Changes the events to wait for. Hang-ups and errors are always reported, even without interest.
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

    /// Handles the results of one wait: ready descriptors, then alarms that are due.
    @Loop static func handle(_ events: [clinux_epoll_event]) {
        for event in events { handlers[event.token]?(event.events) }
        fireAlarms()
    }
}
