// SPDX-License-Identifier: GPL-3.0-or-later
import ReadersPCSC
import TestSupport
import Testing

extension RealServices {
    /// Counts the wake-ups of idle threads in a period of time, so these tests sleep.
    @Suite("idle")
    struct IdleTests {
        /// Returns the wake-ups of the driver's threads in `window`.
        private func watch(_ window: Duration) async throws -> [(thread: Threads.Thread, count: Int)] {
            // A thread that has just sent an event may still be running.
            try await Task.sleep(for: .milliseconds(200))
            let before = Threads.now
            try await Task.sleep(for: window)
            let after = Threads.now
            #expect(before.ofDriver.map(\.id) == after.ofDriver.map(\.id))
            return before.wakeUps(until: after).filter { $0.thread.name.hasPrefix("pcsc-") }
        }

        @Test("monitoring two readers with cards causes no wake-up")
        func readers() async throws {
            PCSCD.cleanUp()
            var events = Events(PCSCBackend())
            let pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            try await events.wait(for: "added Virtual One 00 01")
            let cards = [VPCDCard(port: 36_000), VPCDCard(port: 36_001)]
            for card in cards { card.insert() }
            _ = try await events.next(2)
            // When pcscd does not count its readers, the driver requests the list again after one second.
            try await Task.sleep(for: .seconds(2))
            let threads = Threads.now.ofDriver.map(\.name).sorted()
            #expect(threads == ["pcsc-socket", "pcsc-watch"])
            let wakeUps = try await watch(.seconds(5))
            print("idle with two readers and cards: \(wakeUps.map(\.count).reduce(0, +)) wake-ups of \(threads) in 5 s")
            #expect(wakeUps.isEmpty, "\(wakeUps)")
            // A change still wakes the driver.
            cards[0].remove()
            #expect(try await events.next() == "withdrawn Virtual One 00 00")
            await pcscd.end()
        }

        @Test("without pcscd there is no wake-up, and a start of pcscd is detected")
        func withoutPCSCD() async throws {
            PCSCD.cleanUp()
            var events = Events(PCSCBackend())
            #expect(try await events.next() == "health pcscd")
            let wakeUps = try await watch(.seconds(3))
            print("idle without pcscd: \(wakeUps.map(\.count).reduce(0, +)) wake-ups in 3 s")
            #expect(wakeUps.isEmpty, "\(wakeUps)")
            let pcscd = try PCSCD([])
            #expect(try await events.next() == "health ok")
            await pcscd.end()
        }
    }
}
