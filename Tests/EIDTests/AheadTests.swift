// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Synchronization
import Testing

@Suite("Values computed ahead")
struct AheadTests {
    private struct Broken: Error {}

    private final class Counter: Sendable {
        private let count = Mutex(0)

        var value: Int { count.withLock { $0 } }

        func next() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    @Test("a value is computed once, whoever comes first, and given once")
    func once() {
        // More than the pool has threads, so that some are computed by their user.
        let counters = (0..<500).map { _ in Counter() }
        let values = counters.map { counter in Ahead<Int, Never> { counter.next() } }
        for value in values {
            #expect(value.take() == 1)
            #expect(value.take() == nil)
        }
        #expect(counters.allSatisfy { $0.value == 1 })
    }

    @Test("what fails fails at its use, once")
    func failure() throws {
        let counter = Counter()
        let value = Ahead<Int, Broken> { () throws(Broken) in
            _ = counter.next()
            throw Broken()
        }
        #expect(throws: Broken.self) { try value.take() }
        #expect(try value.take() == nil)
        #expect(counter.value == 1)
    }
}
