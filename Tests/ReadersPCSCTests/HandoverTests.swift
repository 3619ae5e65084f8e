// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import Synchronization
import Testing

@testable import ReadersPCSC

@Suite("work on own threads", .timeLimit(.minutes(5)))
struct HandoverTests {
    @Test("a value is handed over, whoever comes first")
    func value() async {
        let early = Handover<Int>()
        #expect(early.give(1))
        #expect(await early.value() == 1)

        let late = Handover<Int>()
        async let value = late.value()
        #expect(late.give(2))
        #expect(await value == 2)
        #expect(!late.give(3))
    }

    @Test("who is cancelled gets nothing, and the giver learns that nobody came")
    func cancelled() async {
        let (abandoned, continuation) = AsyncStream.makeStream(of: Void.self)
        let handover = Handover<Int> { continuation.finish() }
        let task = Task { await handover.value() }
        task.cancel()
        #expect(await task.value == nil)
        for await _ in abandoned {}
        #expect(!handover.give(1))
    }

    @Test("a value that was given before the cancel is not lost")
    func cancelledLate() async {
        let handover = Handover<Int> { Issue.record("abandoned") }
        #expect(handover.give(1))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await handover.value()
        }
        #expect(await task.value == 1)
    }

    @Test("the waiting can be ended from outside as well")
    func abandoned() async {
        let handover = Handover<Int>()
        async let value = handover.value()
        handover.abandon()
        #expect(await value == nil)
        #expect(handover.isOver)
        #expect(await handover.value() == nil)
    }

    @Test("jobs run in order on one named thread, the last one last")
    func thread() async throws {
        let ended = Handover<[Int]>()
        let order = Order()
        let thread = try #require(ThreadQueue(thread: "pcsc-test") { _ = ended.give(order.numbers) })
        for number in 1...100 { thread.async { order.add(number) } }
        #expect(await thread.run { 7 } == 7)
        thread.finish { order.add(101) }
        #expect(await ended.value() == Array(1...101))
        #expect(await thread.run { 8 } == nil)
        #expect(!thread.async {})
    }

    @Test("an actor runs on the card's thread, and elsewhere when that has ended")
    func actorOfThread() async throws {
        let ended = Handover<Void>()
        let thread = try #require(ThreadQueue(thread: "pcsc-test") { _ = ended.give(()) })
        let user = User(of: thread)
        #expect(await user.isOnThread)
        #expect(await user.isUndisturbed())
        thread.finish()
        #expect(await ended.value() != nil)
        #expect(await !user.isOnThread)
        #expect(await thread.run { 9 } == nil)
    }

    @Test("a reader is for one at a time, in the order of asking, and who gives up loses the place")
    func gate() async {
        let gate = ReaderGate()
        #expect(await gate.enter("A").value() != nil)
        #expect(await gate.enter("B").value() != nil)
        let order = Order()
        let quitter = gate.enter("A")
        let second = gate.enter("A")
        let third = gate.enter("A")
        quitter.abandon()
        async let secondIsIn: Void? = {
            let turn: Void? = await second.value()
            order.add(2)
            gate.leave("A")
            return turn
        }()
        order.add(1)
        gate.leave("A")
        #expect(await secondIsIn != nil)
        #expect(await third.value() != nil)
        #expect(order.numbers == [1, 2])
        gate.leave("A")
        #expect(await gate.enter("A").value() != nil)
        #expect(await quitter.value() == nil)
    }
}

private actor User {
    private nonisolated let thread: ThreadQueue
    private var disturbances = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(of thread: ThreadQueue) { self.thread = thread }

    var isOnThread: Bool { thread.isCurrent }

    /// Another job, which waits for the actor to be free, does not run while a block is run.
    func isUndisturbed() async -> Bool {
        let other = Task { disturbances += 1 }
        let isOnThread = await thread.run { [thread] in thread.isCurrent }
        let isUndisturbed = disturbances == 0
        await other.value
        return isOnThread == true && isUndisturbed
    }
}

private final class Order: Sendable {
    private let list = Mutex<[Int]>([])
    func add(_ number: Int) { list.withLock { $0.append(number) } }
    var numbers: [Int] { list.withLock { $0 } }
}
