// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Testing
import Text

@Suite("Changes in order", .timeLimit(.minutes(5))) @Loop struct InOrderTests {
    /// What has happened, and tasks that wait for it.
    @Loop private final class Steps {
        private(set) var all: [String] = []
        private let waiters = Waiters()

        func add(_ step: String) {
            all.append(step)
            waiters.check()
        }

        func wait(count: Int) async { await waiters.wait { self.all.count >= count } }
    }

    /// A change that waits; each second one fails.
    private static func change(_ number: Int, _ changes: InOrder, _ steps: Steps, _ gate: OneShot<Void>) async {
        do throws(Malformed) {
            try await changes.run { () throws(Malformed) in
                steps.add("begin \(number)")
                await gate.value(whenCancelled: ())
                steps.add("end \(number)")
                if number % 2 == 1 { throw Malformed("a fault") }
            }
        } catch {
            #expect(number % 2 == 1)
        }
    }

    @Test(
        "a change begins when the one before has ended, also one that fails, for tasks on any executor",
        arguments: [nil, 1001] as [UInt32?]
    )
    func order(user: UInt32?) async {
        let (changes, steps) = (InOrder(), Steps())
        let gates = (0..<4).map { _ in OneShot<Void>() }
        let tasks = gates.enumerated().map { number, gate in
            let work: @Loop @Sendable () async -> Void = { await Self.change(number, changes, steps, gate) }
            return Task(executorPreference: Pool.share(of: user), operation: work)
        }
        for count in stride(from: 1, through: 7, by: 2) {
            await steps.wait(count: count)
            // The others have time to break in.
            for _ in 0..<50 { await Task.yield() }
            #expect(steps.all.count == count)
            let number = steps.all.last?.split(separator: " ").last.flatMap { Int($0) } ?? 0
            gates[number].fill(())
        }
        for task in tasks { await task.value }
        let pairs = stride(from: 0, to: 8, by: 2).map { (steps.all[$0], steps.all[$0 + 1]) }
        #expect(pairs.allSatisfy { $0.replacing("begin", with: "end") == $1 }, "\(steps.all)")
        #expect(await changes.run { true })
    }

    @Test("a wait looks again before it waits, since something may have changed between")
    func secondLook() async {
        let waiters = Waiters()
        var looks = 0
        await waiters.wait {
            looks += 1
            return looks > 1
        }
        #expect(looks == 2)
    }

    @Test("each wait ends with its own condition")
    func conditions() async {
        let (waiters, steps) = (Waiters(), Steps())
        var number = 0
        let tasks = (1...3).map { wanted in
            Task { @Loop in
                await waiters.wait { number >= wanted }
                steps.add("\(wanted)")
            }
        }
        for next in 1...3 {
            number = next
            waiters.check()
            await tasks[next - 1].value
            #expect(steps.all == (1...next).map { "\($0)" })
        }
    }
}
