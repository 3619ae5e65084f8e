// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Synchronization

/// The actor on which everything runs that is neither card cryptography nor a wait in C: sockets, sessions, readers,
/// workflows. Its executor is one thread in `epoll_wait`, so a command is read, handled and answered without a hop,
/// and a workflow's code never races with its session.
@globalActor
package actor Loop {
    package static let shared = Loop()

    private nonisolated let executor = EpollExecutor()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Runs `body` at once; only for the executor's own code, which is on its thread but not known to the compiler as such.
    /// (To ask the language whether it is, thrice in each round, would cost as much as the rest of a round.)
    fileprivate static func assumeIsolated(_ body: @Loop () -> Void) {
        assert(shared.executor.isOnThread)
        withoutActuallyEscaping(body) { unsafeBitCast($0, to: (() -> Void).self)() }
    }

    /// What readiness of one descriptor does; gets the EPOLL bits.
    package typealias Handler = @Loop (_ events: UInt32) -> Void

    @Loop private static var handlers: [UInt64: Handler] = [:]
    @Loop private static var nextToken: UInt64 = 1

    @Loop fileprivate static func dispatch(token: UInt64, events: UInt32) {
        handlers[token]?(events)
    }

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

        /// That of the library is generic code that nobody has specialized: many functions of the runtime for an empty set.
        package init(arrayLiteral elements: Interest...) {
            rawValue = elements.reduce(0) { $0 | $1.rawValue }
        }
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

        /// Hang-ups and errors are always reported, even without interest.
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

    /// Calls back at a steady interval until it goes away. The C function is timerfd_settime.
    @Loop package final class Timer {
        private let descriptor: Int32
        private var registration: Registration?

        package init(every interval: Duration, _ body: @escaping @Loop () -> Void) throws(SystemError) {
            descriptor = clinux_timerfd()
            guard descriptor >= 0 else { throw SystemError("timerfd_create") }
            let (seconds, attoseconds) = interval.components
            let microseconds = UInt64(max(seconds, 0)) * 1_000_000 + UInt64(max(attoseconds, 0)) / 1_000_000_000_000
            guard clinux_timerfd_set(descriptor, max(microseconds, 1)) == 0 else {
                throw SystemError("timerfd_settime")
            }
            let timer = descriptor
            registration = try Loop.watch(timer, .read) { _ in
                var expirations: UInt64 = 0
                _ = read(timer, &expirations, 8)
                body()
            }
        }

        isolated deinit {
            registration?.cancel()
            close(descriptor)
        }
    }

    /// CLOCK_MONOTONIC in milliseconds, looked at once in each round of the loop: what happens in one round happens at one
    /// time.
    @Loop package static var now: Int64 { microseconds / 1000 }

    @Loop static var microseconds: Int64 { shared.executor.microseconds }

    /// Has jobs that belong to no executor run on the loop, too; to be called once, before the first task.
    ///
    /// Such a job is nearly always a task that has been waiting: the language sends it by way of its pool to the actor
    /// that it belongs to, here at the cost of two changes of threads. And that pool, once it has had a job, wakes the
    /// process every second to look after its threads. What computes or blocks has threads of its own, such as
    /// `Workers.Pool`. What sleeps for a time (`Task.sleep`) still uses the language's pool.
    package static func takeJobsOfNoExecutor() {
        clinux_take_global_jobs { job in Loop.shared.executor.enqueue(.ofNoExecutor(UInt(bitPattern: job))) }
    }

    /// Blocks the calling thread for ever; the end of `main`.
    package static func park() -> Never {
        while true { pause() }
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

/// The loop's thread: runs the actor's jobs and the handlers of ready descriptors, and sleeps in the kernel otherwise.
private final class EpollExecutor: SerialExecutor, @unchecked Sendable {
    private let epoll: Int32
    private let wake: Int32
    private let jobs = Mutex<[Job]>([])
    private let threadID = Atomic<UInt>(0)

    private static let wakeToken: UInt64 = 0

    enum Job: Sendable {
        case ofLoop(UnownedJob)
        /// Its address, from the language's runtime.
        case ofNoExecutor(UInt)
    }

    /// Of this round; nil: nobody has asked. Only for the loop's thread.
    private var time: Int64?

    var microseconds: Int64 {
        if let time { return time }
        var clock = timespec()
        clock_gettime(CLOCK_MONOTONIC, &clock)
        let now = Int64(clock.tv_sec) * 1_000_000 + Int64(clock.tv_nsec) / 1000
        time = now
        return now
    }

    init() {
        epoll = clinux_epoll_create()
        wake = clinux_eventfd()
        _ = clinux_epoll_control(epoll, CLINUX_EPOLL_ADD, wake, CLINUX_EPOLLIN, Self.wakeToken)
        var thread = pthread_t()
        pthread_create(
            &thread,
            nil,
            { raw in
                guard let raw else { return nil }
                let executor = Unmanaged<EpollExecutor>.fromOpaque(raw).takeRetainedValue()
                clinux_set_thread_name("badged-loop")
                executor.run()
                return nil
            },
            Unmanaged.passRetained(self).toOpaque()
        )
        pthread_detach(thread)
    }

    fileprivate var isOnThread: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    func control(_ operation: clinux_epoll_operation, _ descriptor: Int32, _ interest: Loop.Interest, _ token: UInt64)
        -> Bool
    {
        clinux_epoll_control(epoll, operation, descriptor, interest.rawValue, token) == 0
    }

    func enqueue(_ job: consuming ExecutorJob) {
        enqueue(.ofLoop(UnownedJob(job)))
    }

    func enqueue(_ job: Job) {
        let wasEmpty = jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
        // The loop looks at its jobs before it sleeps, so its own thread needs no wake-up.
        guard wasEmpty, !isOnThread else { return }
        var one: UInt64 = 1
        _ = write(wake, &one, 8)
    }

    func checkIsolated() {
        if !isOnThread { fatalError("not on the loop's thread") }
    }

    func isIsolatingCurrentContext() -> Bool? { isOnThread }

    func isSameExclusiveExecutionContext(other: EpollExecutor) -> Bool { self === other }

    private func run() {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        let events = UnsafeMutableBufferPointer<clinux_epoll_event>.allocate(capacity: 64)
        events.initialize(repeating: clinux_epoll_event())
        while true { turn(events) }
    }

    /// One round. A function of its own and no array: in a loop that never ends the optimizer need not destroy what a
    /// round has made (an array of events was left behind at each wake-up).
    private func turn(_ events: UnsafeMutableBufferPointer<clinux_epoll_event>) {
        let pending = jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
        for job in pending {
            switch job {
            case .ofLoop(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            case .ofNoExecutor(let address): clinux_run_global_job(UnsafeMutableRawPointer(bitPattern: address))
            }
        }
        let hasMore = jobs.withLock { !$0.isEmpty }
        var patience: Int32 = 0
        if !hasMore { Loop.assumeIsolated { patience = Loop.patience } }
        let count = clinux_epoll_wait(epoll, events.baseAddress, Int32(events.count), patience)
        time = nil
        for event in events.prefix(Int(max(count, 0))) {
            if event.token == Self.wakeToken {
                var value: UInt64 = 0
                _ = read(wake, &value, 8)
            } else {
                Loop.assumeIsolated { Loop.dispatch(token: event.token, events: event.events) }
            }
        }
        Loop.assumeIsolated { Loop.ring() }
    }
}
