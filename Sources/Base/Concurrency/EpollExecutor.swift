// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Host
import Synchronization

/// Executes the jobs of `Loop` on one thread, which waits in the kernel when there are none.
final class EpollExecutor: SerialExecutor, @unchecked Sendable {
    private let epoll: Int32
    private let wake: Int32
    private let jobs = Mutex<[UnownedJob]>([])
    private let threadID = Atomic<UInt>(0)

    private static let wakeToken: UInt64 = 0
    private static let mostEvents = 64

    /// Why the loop cannot run; nil if its thread runs.
    private(set) var failure: SystemError?

    // Unchecked: only the thread of the loop uses these two.
    /// The time of CLOCK_MONOTONIC in microseconds, at the beginning of this round.
    private(set) var microseconds: Int64 = 0
    /// The time of the next alarm; nil for none.
    var deadline: Int64?

    init() {
        epoll = clinux_epoll_create()
        wake = epoll < 0 ? -1 : clinux_eventfd()
        guard wake >= 0, clinux_epoll_control(epoll, CLINUX_EPOLL_ADD, wake, CLINUX_EPOLLIN, Self.wakeToken) == 0 else {
            failure = SystemError("epoll")
            return
        }
        if !startThread("badged-loop", { [self] in run() }) { failure = SystemError("pthread_create", EAGAIN) }
    }

    func control(
        _ operation: clinux_epoll_operation,
        _ descriptor: Int32,
        _ interest: Loop.Interest,
        _ token: UInt64
    ) -> Bool {
        clinux_epoll_control(epoll, operation, descriptor, interest.rawValue, token) == 0
    }

    // MARK: SerialExecutor

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let wasEmpty = jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
        // The loop checks its jobs before it waits, so its own thread needs no wake-up.
        guard wasEmpty, !isOnThread else { return }
        var one: UInt64 = 1
        _ = write(wake, &one, 8)
    }

    private var isOnThread: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    func isIsolatingCurrentContext() -> Bool? { isOnThread }

    // MARK: The thread

    private func run() {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        readClock()
        while true { turn() }
    }

    /// Runs the queued jobs, then waits for events. Not inlined, because the optimizer leaks arrays in an endless loop.
    @inline(never)
    private func turn() {
        let pending = jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
        for job in pending { job.runSynchronously(on: asUnownedSerialExecutor()) }
        let hasMore = jobs.withLock { !$0.isEmpty }

        let events = wait(microseconds: hasMore ? 0 : timeout)
        readClock()
        let isAlarmDue = deadline.map { $0 <= microseconds } ?? false
        guard !events.isEmpty || isAlarmDue else { return }
        Task { @Loop in Loop.handle(events) }
    }

    /// Microseconds until the next alarm; -1 for none.
    private var timeout: Int64 { deadline.map { max(0, $0 - microseconds) } ?? -1 }

    private func wait(microseconds: Int64) -> [clinux_epoll_event] {
        var events = [clinux_epoll_event](repeating: clinux_epoll_event(), count: Self.mostEvents)
        let count = clinux_epoll_wait(epoll, &events, Int32(Self.mostEvents), microseconds)
        events.removeLast(events.count - Int(max(count, 0)))
        events.removeAll { event in
            guard event.token == Self.wakeToken else { return false }
            var value: UInt64 = 0
            _ = read(wake, &value, 8)
            return true
        }
        return events
    }

    private func readClock() { microseconds = Loop.clock }
}
