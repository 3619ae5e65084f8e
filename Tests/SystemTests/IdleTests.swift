// SPDX-License-Identifier: GPL-3.0-or-later
import ReadersPCSC
import TestSupport
import Testing

extension RealServices {
    /// Counts the wake-ups of idle threads, which needs a period of time.
    @Suite("idle")
    struct IdleTests {
        @Test("monitoring two readers with cards causes no wake-up")
        func readers() async throws {
            PCSCD.cleanUp()
            let events = Events(PCSCBackend())
            let pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            try await events.wait(for: "added Virtual One 00 01")
            let cards = [VPCDCard(port: 36_000), VPCDCard(port: 36_001)]
            for card in cards { card.insert() }
            _ = try await events.next(2)
            // When pcscd does not count its readers, the driver requests the list again after one second.
            let wakeUps = try await Threads.wakeUps { Threads.now.ofDriver }
            #expect(wakeUps.isEmpty, "\(wakeUps)")
            #expect(Threads.now.ofDriver.map(\.name).sorted() == ["pcsc-socket", "pcsc-watch"])
            // A change still wakes the driver.
            cards[0].remove()
            #expect(try await events.next() == "withdrawn Virtual One 00 00")
            await pcscd.end()
        }

        @Test("without pcscd there is no wake-up, and a start of pcscd is detected")
        func withoutPCSCD() async throws {
            PCSCD.cleanUp()
            let events = Events(PCSCBackend())
            #expect(try await events.next() == "health pcscd")
            let wakeUps = try await Threads.wakeUps { Threads.now.ofDriver }
            #expect(wakeUps.isEmpty, "\(wakeUps)")
            let pcscd = try PCSCD([])
            #expect(try await events.next() == "health ok")
            await pcscd.end()
        }
    }
}
