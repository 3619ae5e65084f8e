// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import ISO7816
import Readers
import Synchronization
import TestSupport
import Testing

@testable import ReadersPCSC

extension RealServices {
    /// Tests readers that report every change at once, as USB readers do, and have a simulated keypad.
    @Suite("readers with events and keypads")
    struct FakeReaderTests {
        private static let path = "/run/fake-reader"
        private static let name = "Fake Reader 00 00"

        /// The feature list has EXECUTE_PACE, MODIFY_PIN_DIRECT and the reader properties.
        private static let pace: UInt32 = 0x4200_0DCC, modify: UInt32 = 0x4200_0DB3, properties: UInt32 = 0x4233_0012
        private static let features: [UInt8] = [
            0x07, 4, 0x42, 0x00, 0x0D, 0xB3, 0x20, 4, 0x42, 0x00, 0x0D, 0xCC, 0x12, 4, 0x42, 0x33, 0x00, 0x12,
        ]

        /// Returns a keypad reader whose keypad functions are answered by `keypad`.
        private func keypadReader(
            _ keypad: @escaping @Sendable (UInt32, [UInt8]) -> FakeReader.Control = { _, _ in FakeReader.Control() }
        ) -> FakeReader {
            unlink(Self.path)
            let control: @Sendable (UInt32, [UInt8]) -> FakeReader.Control = { function, input in
                switch function {
                case 0x4200_0000 + 3400: FakeReader.Control(answer: Self.features)
                case Self.properties: FakeReader.Control(answer: [0x0A, 4, 0, 0, 1, 0])
                default: keypad(function, input)
                }
            }
            return FakeReader(Self.path, control: control)
        }

        /// A pcscd with a reader, and a backend that has listed the reader.
        private struct Stage {
            let reader: FakeReader
            let pcscd: PCSCD
            let backend = PCSCBackend(absenceTime: PCSCD.absenceTime)
            let events: Events

            init(_ reader: FakeReader, keypad: Bool = true) async throws {
                self.reader = reader
                PCSCD.cleanUp()
                events = Events(backend)
                pcscd = try PCSCD([.fake("Fake Reader", path: reader.path)])
                try await events.wait(for: "added \(name)" + (keypad ? " keypad" : ""))
            }

            /// Inserts a card, and waits for it.
            func insert() async throws -> Insertion {
                reader.insert()
                return try await events.insertion(in: name)
            }

            /// Inserts a card, and connects to it.
            func connect() async throws -> any KeypadConnection {
                try #require(await backend.connect(insert()) as? any KeypadConnection)
            }
        }

        // MARK: Events

        @Test("a quick swap of cards that the reader detects is a new insertion")
        func quickSwap() async throws {
            let stage = try await Stage(keypadReader())
            var old = try await stage.insert()
            for _ in 0..<20 {
                // The card must be in use. pcscd powers down an unused card, and then only pcscd may see the
                // empty stage.reader. No client can detect such a swap.
                let connection = try await stage.backend.connect(old)
                stage.reader.remove()
                await stage.reader.wait { $0.absenceReport != nil }
                stage.reader.insert()
                let new = try await stage.events.insertion(in: Self.name)
                #expect(new != old)
                let gone = old
                await #expect(throws: CardError.removed) { try await stage.backend.connect(gone) }
                await #expect(throws: CardError.removed) { try await connection.transmit(CommandAPDU(0, 0, 0, 0)) }
                await connection.disconnect(reset: true)
                old = new
            }
            let connection = try await stage.backend.connect(old)
            await connection.disconnect(reset: false)
            await stage.pcscd.end()
        }

        @Test("a card that has left is not reset, so pcscd reports no card that is not there")
        func resetAfterRemoval() async throws {
            let stage = try await Stage(keypadReader())
            let connection = try await stage.connect()
            _ = try await connection.transmit(CommandAPDU(0, 0xC0, 0, 0))
            stage.reader.remove()
            try await stage.events.wait(for: "withdrawn \(Self.name)")
            await connection.disconnect(reset: true)
            #expect(stage.reader.resets == 0)
            stage.reader.insert()
            #expect(try await stage.events.next() == "inserted \(Self.name)")
            stage.reader.remove()
            #expect(try await stage.events.next() == "withdrawn \(Self.name)")
            await stage.pcscd.end()
        }

        @Test("a card without an answer to reset is inserted, and a connection fails as mute")
        func mute() async throws {
            let stage = try await Stage(keypadReader())
            stage.reader.insert(answerToReset: nil)
            let insertion = try await stage.events.insertion(in: Self.name)
            await #expect(throws: CardError.mute) { try await stage.backend.connect(insertion) }
            await stage.pcscd.end()
        }

        @Test("a driver error after the removal of the card is reported as removed")
        func driverError() async throws {
            unlink(Self.path)
            let reader = FakeReader(Self.path, answer: { $0[1] == 0xEE ? .leave : FakeCard.echo($0) })
            let stage = try await Stage(reader, keypad: false)
            let connection = try await stage.backend.connect(stage.insert())
            #expect(!(connection is any KeypadConnection))
            await #expect(throws: CardError.removed) { try await connection.transmit(CommandAPDU(0, 0xEE, 0, 0)) }
            #expect(try await stage.events.next() == "withdrawn \(Self.name)")
            await connection.disconnect(reset: true)
            await stage.pcscd.end()
        }

        @Test("unplugging a reader withdraws its card")
        func unplugged() async throws {
            let stage = try await Stage(keypadReader())
            let connection = try await stage.connect()
            stage.reader.unplug()
            #expect(try await stage.events.next() == "withdrawn \(Self.name)")
            await #expect(throws: CardError.removed) { try await connection.transmit(CommandAPDU(0, 0, 0, 0)) }
            await connection.disconnect(reset: true)
            await stage.pcscd.end()
        }

        @Test("a wait for a transaction ends on request or with the transaction of the other program")
        func transactionWait() async throws {
            let stage = try await Stage(keypadReader())
            _ = try await stage.insert()
            let other = try await OtherProgram()
            for givesUp in [true, false] {
                let card = try PCSCContext().connect(ReaderName(Self.name), .shared)
                try other.connect(Self.name, exclusively: false)
                try other.begin()
                let wait = TransactionWait()
                let (ended, continuation) = AsyncStream.makeStream(of: PCSCCode.self)
                Thread.detachNewThread { continuation.yield(wait.begin(card)) }
                try await until { wait.isWaiting }
                if givesUp { wait.giveUp() } else { try other.end() }
                var codes = ended.makeAsyncIterator()
                #expect(await codes.next() == (givesUp ? .invalidHandle : .success))
                card.disconnect(reset: false)
                try other.disconnect()
            }
            await stage.pcscd.end()
        }

        // MARK: Features

        /// Starts a pcscd with a card in `reader`, to which another program is connected before a backend starts.
        private func connectedFirst(_ reader: FakeReader, exclusively: Bool) async throws -> (PCSCD, OtherProgram) {
            PCSCD.cleanUp()
            let pcscd = try PCSCD([.fake("Fake Reader", path: reader.path)])
            reader.insert()
            await reader.wait { $0.poweredUp != nil }
            let other = try await OtherProgram()
            try await until { (try? other.connect(Self.name, exclusively: exclusively)) != nil }
            return (pcscd, other)
        }

        @Test("a reader in exclusive use at the start is a basic reader until it is released")
        func heldAtFirst() async throws {
            let reader = keypadReader()
            let (pcscd, other) = try await connectedFirst(reader, exclusively: true)
            let backend = PCSCBackend()
            let events = Events(backend)
            #expect(try await events.next(3) == ["health ok", "added \(Self.name)", "inserted \(Self.name)"])
            let insertion = try #require(events.insertions[Self.name])
            await #expect(throws: CardError.exclusive) { try await backend.connect(insertion) }
            try other.disconnect()
            try await events.wait(for: "changed \(Self.name) keypad")
            let connection = try await backend.connect(insertion)
            #expect(connection is any KeypadConnection)
            await connection.disconnect(reset: false)
            await pcscd.end()
        }

        @Test(
            "another program's transaction does not delay the events of a reader, and its features arrive later"
        )
        func transactionAtFirst() async throws {
            let reader = keypadReader()
            let (pcscd, other) = try await connectedFirst(reader, exclusively: false)
            try other.begin()
            let events = Events(PCSCBackend())
            #expect(try await events.next(3) == ["health ok", "added \(Self.name)", "inserted \(Self.name)"])
            reader.remove()
            #expect(try await events.next() == "withdrawn \(Self.name)")
            try other.disconnect()
            #expect(try await events.next() == "changed \(Self.name) keypad")
            await pcscd.end()
        }

        // MARK: Keypad

        @Test("PACE on the reader sends the request and decodes the answer")
        func pace() async throws {
            let reader = keypadReader { function, input in
                guard function == Self.pace else { return FakeReader.Control(code: FakeReader.Code.notSupported) }
                if input.first == 3 { return FakeReader.Control(answer: [0, 0, 0, 0, 0, 0]) }
                let members: [UInt8] = [0x90, 0x00, 2, 0, 0x31, 0x00, 2, 0x44, 0x45, 0, 3, 0, 1, 2, 3]
                return FakeReader.Control(answer: [0, 0, 0, 0, UInt8(members.count), 0] + members)
            }
            let stage = try await Stage(reader)
            let connection = try await stage.connect()
            let result = try await connection.establishPACE(
                KeypadPACERequest(passwordID: 3, chat: [0x7F, 0x4C, 0x00], certificateDescription: [0x30, 0x00])
            )
            var expected = KeypadPACEResult(outcome: .established, mseStatus: .ok)
            expected.cardAccess = [0x31, 0x00]
            expected.carCurrent = Array("DE".utf8)
            expected.idPICC = [1, 2, 3]
            #expect(result == expected)
            #expect(try await connection.transmit(CommandAPDU(0, 0, 0, 0)).status == .ok)
            try await connection.destroyPACE()
            await connection.disconnect(reset: true)
            let calls = reader.controls.filter { $0.function == Self.pace }.map(\.input)
            #expect(calls == [[2, 10, 0, 3, 3, 0x7F, 0x4C, 0x00, 0, 2, 0, 0x30, 0x00], [3, 0, 0]])
            #expect(reader.resets == 1)
            await stage.pcscd.end()
        }

        @Test(
            "each result code of PACE on the reader is mapped to an outcome",
            arguments: [
                ([0xC2, 0x63, 0x06, 0xF0, 0, 0], .wrongPassword), ([0xC2, 0x63, 0x06, 0xF0], .wrongPassword),
                ([0x01, 0x00, 0x20, 0xF0, 0, 0], .cancelled), ([0x02, 0x00, 0x20, 0xF0, 0, 0], .timeout),
                ([0x02, 0x00, 0x10, 0xF0, 0, 0], .noCard), ([0x06, 0x00, 0x00, 0xE0, 0, 0], .failed(0xE000_0006)),
            ] as [([UInt8], KeypadPACEResult.Outcome)]
        )
        func outcome(answer: [UInt8], outcome: KeypadPACEResult.Outcome) async throws {
            let stage = try await Stage(keypadReader { _, _ in FakeReader.Control(answer: answer) })
            let connection = try await stage.connect()
            #expect(try await connection.establishPACE(KeypadPACERequest(passwordID: 3)).outcome == outcome)
            await connection.disconnect(reset: true)
            await stage.pcscd.end()
        }

        @Test(
            "a truncated success answer is an error",
            arguments: [[], [0, 0], [0, 0, 0, 0, 9, 0, 0x90]]
        )
        func cut(answer: [UInt8]) async throws {
            let stage = try await Stage(keypadReader { _, _ in FakeReader.Control(answer: answer) })
            let connection = try await stage.connect()
            let error = CardError.other(
                "the reader's answer to EstablishPACEChannel is malformed (\(answer.count) bytes)"
            )
            await #expect(throws: error) { try await connection.establishPACE(KeypadPACERequest(passwordID: 3)) }
            await connection.disconnect(reset: true)
            await stage.pcscd.end()
        }

        @Test(
            "each status word of the PIN change on the reader is returned",
            arguments: [0x9000, 0x6400, 0x6401, 0x6402, 0x6403, 0x6982] as [UInt16]
        )
        func modifyPIN(status: UInt16) async throws {
            let reader = keypadReader { function, _ in
                guard function == Self.modify else { return FakeReader.Control(code: FakeReader.Code.notSupported) }
                return FakeReader.Control(answer: [UInt8(status >> 8), UInt8(status & 0xFF)])
            }
            let stage = try await Stage(reader)
            let connection = try await stage.connect()
            #expect(try await connection.modifyPIN() == StatusWord(status))
            await connection.disconnect(reset: true)
            let call = try #require(reader.controls.last { $0.function == Self.modify })
            #expect(call.input.count == 28)
            #expect(call.input.suffix(4) == [0x00, 0x2C, 0x02, 0x03])
            await stage.pcscd.end()
        }

        @Test("a reader error during PIN entry is mute with a card, else removed", arguments: [true, false])
        func failure(staysPresent: Bool) async throws {
            let box = Box<FakeReader>()
            let reader = keypadReader { _, _ in
                if !staysPresent { box.value?.remove() }
                return FakeReader.Control(code: FakeReader.Code.communicationError)
            }
            box.value = reader
            let stage = try await Stage(reader)
            let connection = try await stage.connect()
            await #expect(throws: staysPresent ? CardError.mute : .removed) { try await connection.modifyPIN() }
            await connection.disconnect(reset: true)
            box.value = nil
            await stage.pcscd.end()
        }

        @Test("PIN entry can be cancelled, and the reader stays busy until the entry ends and the card is reset")
        func cancelled() async throws {
            let typing = DispatchSemaphore(value: 0)
            let reader = keypadReader { _, _ in
                typing.wait()
                return FakeReader.Control(answer: [0, 0, 0, 0, 0, 0])
            }
            let stage = try await Stage(reader)
            let insertion = try await stage.insert()
            let connection = try #require(await stage.backend.connect(insertion) as? any KeypadConnection)
            let asking = Task { try await connection.establishPACE(KeypadPACERequest(passwordID: 3)) }
            await reader.wait { $0.controls.contains { $0.function == Self.pace } }
            asking.cancel()
            await #expect(throws: CardError.cancelled) { try await asking.value }
            await connection.disconnect(reset: true)
            let next = Task { [backend = stage.backend] in try await backend.connect(insertion) }
            next.cancel()
            await #expect(throws: CardError.cancelled) { try await next.value }
            #expect(reader.resets == 0)
            typing.signal()
            let after = try await stage.backend.connect(insertion)
            #expect(reader.resets == 1)
            await after.disconnect(reset: false)
            await stage.pcscd.end()
        }
    }
}

private final class Box<Value: Sendable>: Sendable {
    private let held = Mutex<Value?>(nil)
    init() {}
    var value: Value? {
        get { held.withLock { $0 } }
        set { held.withLock { $0 = newValue } }
    }
}
