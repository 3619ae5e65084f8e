// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Testing
import Text

@Suite("Shared runs", .timeLimit(.minutes(5))) @Loop struct SharedRunTests {
    /// Work whose first run waits.
    @Loop private final class Work {
        let begun = OneShot<Void>()
        let end = OneShot<Void>()
        private var runs = 0

        func run() async -> Int {
            runs += 1
            let number = runs
            if number == 1 {
                begun.fill(())
                await end.value(whenCancelled: ())
            }
            return number
        }
    }

    @Test("all who ask during a run share the next one")
    func shared() async {
        let (shared, work) = (SharedRun<Int>(), Work())
        func ask() -> Task<Int, Never> {
            Task.immediate { @Loop in await shared.value { await work.run() } }
        }
        let first = ask()
        await work.begun.value(whenCancelled: ())
        let others = (0..<100).map { _ in ask() }
        work.end.fill(())
        #expect(await first.value == 1)
        for other in others { #expect(await other.value == 2) }
        #expect(await ask().value == 3)
    }
}
