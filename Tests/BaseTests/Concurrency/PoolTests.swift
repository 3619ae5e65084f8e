// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Host
import Synchronization
import Testing
import Text

@testable import Concurrency

@Suite("The pool", .timeLimit(.minutes(5)))
struct PoolTests {
    /// Jobs that block until the test lets them go.
    private final class Blocking: Sendable {
        private let started = Mutex(0)
        private let go = DispatchSemaphore(value: 0)

        var count: Int { started.withLock { $0 } }

        /// Queues blocking jobs, and returns when `wanted` of them run.
        func add(_ count: Int, to pool: Pool, for user: UInt32?, running wanted: Int) async {
            let running = OneShot<Void>()
            let target = self.count + wanted
            for _ in 0..<count {
                pool.add(for: user) { [self] in
                    let number = started.withLock { started in
                        started += 1
                        return started
                    }
                    if number == target { running.fill(()) }
                    go.wait()
                }
            }
            await running.value(whenCancelled: ())
        }

        func end(_ count: Int) { for _ in 0..<count { go.signal() } }
    }

    private func ends(_ pool: Pool, for user: UInt32?) async {
        let end = OneShot<Void>()
        pool.add(for: user) { end.fill(()) }
        await end.value(whenCancelled: ())
    }

    @Test("the jobs of one user, which block for long, keep nobody else waiting")
    func sharing() async {
        let pool = Pool(threads: 2)
        let blocking = Blocking()
        await blocking.add(25, to: pool, for: 1000, running: 2)
        for user: UInt32? in [1001, 1002, 0, nil] { await ends(pool, for: user) }
        #expect(blocking.count == 2, "one user has no more threads than there are")
        // Further users block, too.
        for user: UInt32 in 2000..<2010 { await blocking.add(3, to: pool, for: user, running: 1) }
        await ends(pool, for: 1001)
        blocking.end(25 + 30)
        await ends(pool, for: 1000)
    }

    @Test("root has a thread also when a crowd of users has all others")
    func root() async {
        let pool = Pool(threads: 1)
        let blocking = Blocking()
        for user: UInt32 in 1..<66 { await blocking.add(1, to: pool, for: user, running: 1) }
        let late = Blocking()
        pool.add(for: 99) { late.end(1) }
        await ends(pool, for: 0)
        blocking.end(65)
        await ends(pool, for: 99)
    }

    @Test("where no further thread can be started, the others do the work")
    func noThreads() async {
        let starts = Mutex(0)
        let pool = Pool(threads: 4) { name, body in
            let isFirst = starts.withLock { count in
                count += 1
                return count == 1
            }
            return isFirst && Concurrency.startThread(name, body)
        }
        let blocking = Blocking()
        await blocking.add(3, to: pool, for: 1, running: 1)
        blocking.end(3)
        await ends(pool, for: 2)
        #expect(starts.withLock { $0 } > 1)
    }

    private actor Worker {
        func block(_ begin: OneShot<Void>, _ end: DispatchSemaphore) {
            begin.fill(())
            end.wait()
        }

        func work() -> Int { 1 }
    }

    @Test("an actor works on the share of the task's user, whatever another user's actors do")
    func actors() async {
        let end = DispatchSemaphore(value: 0)
        let blocked = (0..<16).map { _ in
            let begin = OneShot<Void>()
            let task = Task(executorPreference: Pool.share(of: 4001)) { await Worker().block(begin, end) }
            return (begin, task)
        }
        await blocked[0].0.value(whenCancelled: ())
        let other = Task(executorPreference: Pool.share(of: 4002)) { await Worker().work() }
        #expect(await other.value == 1)
        for _ in blocked { end.signal() }
        for (_, task) in blocked { await task.value }
    }

    private enum Fault: Error { case cancelled, other }

    @Test("work on the pool returns what it throws, and is left when its task is cancelled")
    func leaving() async {
        await #expect(throws: Fault.other) {
            try await Pool.run(orIfCancelled: Fault.cancelled) { () throws(Fault) in throw .other }
        }
        let end = DispatchSemaphore(value: 0)
        let begin = OneShot<Void>()
        let task = Task { () -> Fault? in
            do throws(Fault) {
                try await Pool.run(orIfCancelled: Fault.cancelled) { () throws(Fault) in
                    begin.fill(())
                    end.wait()
                }
                return nil
            } catch {
                return error
            }
        }
        await begin.value(whenCancelled: ())
        task.cancel()
        #expect(await task.value == .cancelled)
        end.signal()
    }
}
