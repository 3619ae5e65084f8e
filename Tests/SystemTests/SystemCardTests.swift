// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import ISO7816
import Readers
import ReadersPCSC
import Synchronization
import TestSupport
import Testing

extension RealServices {
    /// Tests cards in virtual readers of a real pcscd.
    @Suite("cards")
    struct CardTests {
        private static let one = "Virtual One 00 00", two = "Virtual One 00 01"

        /// A pcscd with the two slots of one virtual reader, a backend that has listed both, and a card in the first.
        private struct Stage {
            let pcscd: PCSCD
            let backend = PCSCBackend(absenceTime: PCSCD.absenceTime)
            let events: Events
            let card: VPCDCard
            let insertion: Insertion

            init(_ answer: @escaping @Sendable ([UInt8]) -> FakeAnswer = FakeCard.echo) async throws {
                PCSCD.cleanUp()
                events = Events(backend)
                pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
                try await events.wait(for: "added \(two)")
                card = VPCDCard(port: 36_000, answer: answer)
                card.insert()
                insertion = try await events.insertion(in: one)
            }

            func connect() async throws -> any CardConnection { try await backend.connect(insertion) }

            /// Begins to connect.
            func connecting() -> Task<any CardConnection, any Error> {
                Task { [backend, insertion] in try await backend.connect(insertion) }
            }

            /// Returns another program that has a transaction with the card.
            func transaction() async throws -> OtherProgram {
                let other = try await OtherProgram()
                try other.connect(one, exclusively: false)
                try other.begin()
                return other
            }
        }

        @Test("cards are inserted and withdrawn in several readers")
        func several() async throws {
            PCSCD.cleanUp()
            let events = Events(PCSCBackend())
            let pcscd = try PCSCD([
                .vpcd("Virtual A", port: 36_000), .vpcd("Virtual B", port: 36_010), .vpcd("Virtual C", port: 36_020),
            ])
            try await events.wait(for: "added Virtual C 00 01")
            let cards = [36_000, 36_001, 36_010, 36_011, 36_020, 36_021].map { VPCDCard(port: $0) }
            for card in cards { #expect(card.insert()) }
            let names = ["A", "B", "C"].flatMap { ["Virtual \($0) 00 00", "Virtual \($0) 00 01"] }
            #expect(try await Set(events.next(6)) == Set(names.map { "inserted \($0)" }))
            #expect(Set(events.insertions.values.map(\.number)).count == 6)
            cards[3].remove()
            #expect(try await events.next() == "withdrawn Virtual B 00 01")
            cards[3].insert()
            #expect(try await events.next() == "inserted Virtual B 00 01")
            for card in cards { card.remove() }
            #expect(try await Set(events.next(6)) == Set(names.map { "withdrawn \($0)" }))
            await pcscd.end()
        }

        @Test("commands and answers have any length", arguments: [1, 2, 255, 256, 257, 1000, 30_000, 65_500])
        func lengths(length: Int) async throws {
            let stage = try await Stage()
            let connection = try await stage.connect()
            let data = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
            let answer = try await connection.transmit(CommandAPDU(0, 0xC0, 0, 0, data: data))
            #expect(answer == ResponseAPDU(data: data, .ok))
            await connection.disconnect(reset: false)
            await stage.pcscd.end()
        }

        @Test("a card is reset only on request or when its connection is deallocated")
        func reset() async throws {
            let stage = try await Stage()

            var connection: (any CardConnection)? = try await stage.connect()
            _ = try await connection?.transmit(CommandAPDU(0, 0, 0, 0))
            await connection?.disconnect(reset: false)
            #expect(stage.card.resets == 0)
            await #expect(throws: CardError.cancelled) {
                try await connection?.transmit(CommandAPDU(0, 0, 0, 0))
            }

            connection = try await stage.connect()
            _ = try await connection?.transmit(CommandAPDU(0, 0, 0, 0))
            await connection?.disconnect(reset: true)
            #expect(stage.card.resets == 1)

            connection = try await stage.connect()
            _ = try await connection?.transmit(CommandAPDU(0, 0, 0, 0))
            connection = nil
            // Waits until the deallocated connection is released.
            connection = try await stage.connect()
            #expect(stage.card.resets == 2)
            await connection?.disconnect(reset: false)
            await stage.pcscd.end()
        }

        @Test("the removal of a card during a command is reported as removed")
        func leaves() async throws {
            let stage = try await Stage { $0[1] == 0xEE ? .leave : FakeCard.echo($0) }
            let connection = try await stage.connect()
            _ = try await connection.transmit(CommandAPDU(0, 0, 0, 0))
            await #expect(throws: CardError.removed) { try await connection.transmit(CommandAPDU(0, 0xEE, 0, 0)) }
            #expect(try await stage.events.next() == "withdrawn \(Self.one)")
            await #expect(throws: CardError.removed) { try await connection.transmit(CommandAPDU(0, 0, 0, 0)) }
            await connection.disconnect(reset: true)
            await stage.pcscd.end()
        }

        @Test("a present card that answers with less than a status word is mute")
        func mute() async throws {
            let stage = try await Stage { $0[1] == 0xEE ? .bytes([0x90]) : FakeCard.echo($0) }
            let connection = try await stage.connect()
            await #expect(throws: CardError.mute) { try await connection.transmit(CommandAPDU(0, 0xEE, 0, 0)) }
            #expect(try await connection.transmit(CommandAPDU(0, 0, 0, 0)).status == .ok)
            await connection.disconnect(reset: true)
            await stage.pcscd.end()
        }

        @Test("another card in the same reader is a new insertion, and a connection to the old insertion is refused")
        func swap() async throws {
            let stage = try await Stage()
            stage.card.remove()
            // The driver must see the empty reader. Otherwise it treats the next card as the same card.
            #expect(try await stage.events.next() == "withdrawn \(Self.one)")
            let second = VPCDCard(port: 36_000)
            second.insert()
            let new = try await stage.events.insertion(in: Self.one)
            #expect(new != stage.insertion)
            await #expect(throws: CardError.removed) { try await stage.connect() }
            let connection = try await stage.backend.connect(new)
            await connection.disconnect(reset: false)
            await stage.pcscd.end()
        }

        @Test("exclusive use by another program and its end are reported")
        func exclusive() async throws {
            let stage = try await Stage()
            let other = try await OtherProgram()
            try other.connect(Self.one, exclusively: true)
            await #expect(throws: CardError.exclusive) { try await stage.connect() }
            #expect(try await stage.events.next() == "held \(Self.one)")
            try other.disconnect()
            #expect(try await stage.events.next() == "changed \(Self.one)")
            let connection = try await stage.connect()
            await connection.disconnect(reset: false)
            await stage.pcscd.end()
        }

        @Test("a connect waits for the transaction of another program, even when the transaction ends with a reset")
        func contention() async throws {
            let stage = try await Stage()
            for reset in [false, true] {
                let other = try await stage.transaction()
                let waiting = stage.connecting()
                // A client is told before the other program lets go.
                try await stage.events.wait(for: "held \(Self.one)")
                try other.end(reset: reset)
                try await stage.events.wait(for: "changed \(Self.one)")
                let connection = try await waiting.value
                #expect(try await connection.transmit(CommandAPDU(0, 0, 0, 0)).status == .ok)
                await connection.disconnect(reset: false)
            }
            await stage.pcscd.end()
        }

        @Test("a wait for a transaction can be cancelled repeatedly and uses one thread")
        func cancellation() async throws {
            let stage = try await Stage()
            let other = try await stage.transaction()
            for _ in 0..<20 {
                let waiting = stage.connecting()
                try await until { Threads.now.ofDriver.contains(where: { $0.name == "pcsc-card" }) }
                waiting.cancel()
                await #expect(throws: CardError.cancelled) { try await waiting.value }
            }
            #expect(Threads.now.ofDriver.count { $0.name == "pcsc-card" } == 1)
            try other.end()
            let connection = try await stage.connect()
            #expect(try await connection.transmit(CommandAPDU(0, 0, 0, 0)).status == .ok)
            // The connection holds a transaction too. The other program must wait until the disconnect.
            #expect(stage.card.resets == 0)
            await connection.disconnect(reset: false)
            try other.begin()
            try other.end()
            await stage.pcscd.end()
        }

        @Test("the removal of the card ends a wait for a transaction at once")
        func leavesWhileWaiting() async throws {
            let stage = try await Stage()
            let other = try await stage.transaction()
            let waiting = stage.connecting()
            let inLine = stage.connecting()
            try await until { Threads.now.ofDriver.contains(where: { $0.name == "pcsc-card" }) }
            stage.card.remove()
            await #expect(throws: CardError.removed) { try await waiting.value }
            await #expect(throws: CardError.removed) { try await inLine.value }
            try other.disconnect()
            // The ended waits do not delay the next card.
            stage.card.insert()
            let connection = try await stage.backend.connect(stage.events.insertion(in: Self.one))
            await connection.disconnect(reset: false)
            await stage.pcscd.end()
        }

        @Test("two readers work at the same time")
        func parallel() async throws {
            // Each card answers only after the other card has received its command.
            let both = Rendezvous()
            let answer: @Sendable ([UInt8]) -> FakeAnswer = { command in
                if command[1] == 0xBB { both.meet() }
                return FakeCard.echo(command)
            }
            let stage = try await Stage(answer)
            let second = VPCDCard(port: 36_001, answer: answer)
            second.insert()
            let insertions = try await [stage.insertion, stage.events.insertion(in: Self.two)]
            try await withThrowingTaskGroup { [backend = stage.backend] group in
                for insertion in insertions {
                    group.addTask {
                        let connection = try await backend.connect(insertion)
                        #expect(try await connection.transmit(CommandAPDU(0, 0xBB, 0, 0)).status == .ok)
                        await connection.disconnect(reset: false)
                    }
                }
                try await group.waitForAll()
            }
            await stage.pcscd.end()
        }
    }
}

/// A barrier for two threads.
private final class Rendezvous: Sendable {
    private let count = Mutex(0)
    private let gate = DispatchSemaphore(value: 0)
    func meet() {
        if count.withLock({ count in
            count += 1
            return count % 2 == 0
        }) {
            gate.signal()
        } else {
            gate.wait()
        }
    }
}
