// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization
import Testing

@testable import ReadersPCSC

@Suite("work on own threads", .timeLimit(.minutes(1)))
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
        let handover = Handover<Int>()
        let (abandoned, continuation) = AsyncStream.makeStream(of: Void.self)
        let task = Task { await handover.value { continuation.finish() } }
        task.cancel()
        #expect(await task.value == nil)
        for await _ in abandoned {}
        #expect(!handover.give(1))
    }

    @Test("a value that was given before the cancel is not lost")
    func cancelledLate() async {
        let handover = Handover<Int>()
        #expect(handover.give(1))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await handover.value { Issue.record("abandoned") }
        }
        #expect(await task.value == 1)
    }

    @Test("jobs run in order on one named thread, the last one last")
    func thread() async throws {
        let ended = Handover<[Int]>()
        let order = Order()
        let thread = try #require(CardThread(name: "pcsc-test") { _ = ended.give(order.numbers) })
        for number in 1...100 { thread.async { order.add(number) } }
        #expect(await thread.run { 7 } == 7)
        thread.finish { order.add(101) }
        #expect(await ended.value() == Array(1...101))
        #expect(await thread.run { 8 } == nil)
        #expect(!thread.async {})
    }

    @Test("a reader is for one at a time, in the order of asking, and who gives up leaves the line")
    func gate() async {
        let gate = ReaderGate()
        #expect(await gate.enter("A"))
        #expect(await gate.enter("B"))
        let order = Order()
        let quitter = Task { await gate.enter("A") }
        let second = Task {
            let isIn = await gate.enter("A")
            order.add(2)
            gate.leave("A")
            return isIn
        }
        quitter.cancel()
        #expect(await quitter.value == false)
        order.add(1)
        gate.leave("A")
        #expect(await second.value)
        #expect(order.numbers == [1, 2])
        #expect(await gate.enter("A"))
    }
}

private final class Order: Sendable {
    private let list = Mutex<[Int]>([])
    func add(_ number: Int) { list.withLock { $0.append(number) } }
    var numbers: [Int] { list.withLock { $0 } }
}
