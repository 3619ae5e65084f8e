// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@Suite("Values that are set once", .timeLimit(.minutes(5)))
struct OneShotTests {
    @Test("a wait returns the value that is set before or after the wait begins")
    func value() async {
        let early = OneShot<Int>()
        #expect(early.fill(1))
        #expect(await early.value(whenCancelled: 0) == 1)

        let late = OneShot<Int>()
        async let value = late.value(whenCancelled: 0)
        #expect(late.fill(2))
        #expect(await value == 2)
        #expect(!late.fill(3))
    }

    @Test("a cancelled wait ends, and a later value is ignored")
    func cancelled() async {
        let value = OneShot<Int>()
        let task = Task { await value.value(whenCancelled: 0) }
        task.cancel()
        #expect(await task.value == 0)
        #expect(value.isFilled)
        #expect(!value.fill(1))
    }

    @Test("a value that was set before the task is cancelled is not lost")
    func cancelledLate() async {
        let value = OneShot<Int>()
        #expect(value.fill(1))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await value.value(whenCancelled: 0)
        }
        #expect(await task.value == 1)
    }
}
