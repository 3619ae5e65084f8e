// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Synchronization
import Testing
import Text

@testable import Concurrency

@Suite("Dedicated threads", .timeLimit(.minutes(5)))
struct JobQueueTests {
    @Test("jobs run in order on one thread")
    func queue() async throws {
        let ended = OneShot<[Int]?>()
        let order = Order()
        let queue = JobQueue(thread: "test", onEnd: { ended.fill(order.numbers) })
        let thread = try #require(queue)
        for number in 1...100 { thread.async { order.add(number) } }
        #expect(await thread.run { 7 } == 7)
        thread.finish { order.add(101) }
        #expect(await ended.value(whenCancelled: nil) == Array(1...101))
        #expect(await thread.run { 8 } == nil)
        #expect(!thread.async {})
    }

    @Test("a cancelled task waits for its job for a while, and then leaves it behind", arguments: [true, false])
    func grace(isInTime: Bool) async throws {
        let queue = try #require(JobQueue(thread: "test"))
        let (begun, end) = (OneShot<Void>(), DispatchSemaphore(value: 0))
        let task = Task {
            await queue.run(afterCancel: isInTime ? 240_000 : 1) {
                begun.fill(())
                end.wait()
                return 7
            }
        }
        await begun.value
        task.cancel()
        if isInTime { end.signal() }
        #expect(await task.value == (isInTime ? 7 : nil))
        // The next job waits for the one that was left behind.
        if !isInTime { end.signal() }
        #expect(await queue.run { 8 } == 8)
        queue.finish()
        #expect(await queue.run(afterCancel: 1) { 9 } == nil)
    }

    @Test("an actor on a queue runs on its thread until the actor ends")
    func executor() async throws {
        let queue = JobQueue(thread: "test")
        var user: User? = User(on: try #require(queue))
        let first = await user?.thread
        #expect(await user?.thread == first)
        weak let ended = user
        user = nil
        #expect(ended == nil)
    }

    @Test("there is no queue without its thread")
    func noThread() {
        let queue = JobQueue(thread: "test", start: { _, _ in false })
        #expect(queue == nil)
    }

    @Test("a lack of threads is logged once, until a thread is spawned again")
    func lackOfThreads() {
        let log = SpawnLog()
        let lines = [true, false, false, true, true, false, false].map { log.line("test", isStarted: $0) != nil }
        #expect(lines == [false, true, false, false, false, true, false])
    }

    @Test("a reader has one user at a time, in the order of requests, and a cancelled request leaves the queue")
    func gate() async {
        let gate = ReaderGate()
        #expect(await gate.enter("A").value(whenCancelled: false))
        #expect(await gate.enter("B").value(whenCancelled: false))
        let order = Order()
        let cancelled = gate.enter("A")
        let second = gate.enter("A")
        let third = gate.enter("A")
        cancelled.fill(false)
        async let secondHasReader: Bool = {
            let hasReader = await second.value(whenCancelled: false)
            order.add(2)
            gate.leave("A")
            return hasReader
        }()
        order.add(1)
        gate.leave("A")
        #expect(await secondHasReader)
        #expect(await third.value(whenCancelled: false))
        #expect(order.numbers == [1, 2])
        gate.leave("A")
        #expect(await gate.enter("A").value(whenCancelled: false))
        #expect(await !cancelled.value(whenCancelled: true))
    }
}

private actor User {
    private nonisolated let executor: JobQueue

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(on executor: JobQueue) { self.executor = executor }

    deinit { executor.finish() }

    var thread: UInt { UInt(pthread_self()) }
}

private final class Order: Sendable {
    private let list = Mutex<[Int]>([])
    func add(_ number: Int) { list.withLock { $0.append(number) } }
    var numbers: [Int] { list.withLock { $0 } }
}
