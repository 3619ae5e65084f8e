// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("virtual readers", .timeLimit(.minutes(5)))
struct VirtualReadersTests {
    private let readers = VirtualReaders(kinds: [VirtualEIDKind()])

    /// Reads events one after the other.
    private struct Events {
        var iterator: AsyncStream<ReaderEvent>.AsyncIterator

        init(_ readers: VirtualReaders) { iterator = readers.events.makeAsyncIterator() }

        mutating func next() async throws -> String {
            switch await iterator.next(isolation: #isolation) {
            case .added(let reader): "added \(reader.name)\(reader.hasKeypad ? " keypad" : "")"
            case .changed(let reader): "changed \(reader.name)\(reader.hasKeypad ? " keypad" : "")"
            case .removed(let reader): "removed \(reader)"
            case .inserted(let insertion, let answer): "inserted \(insertion.reader) \(answer.count)"
            case .withdrawn(let insertion): "withdrawn \(insertion.reader)"
            case .held(let insertion): "held \(insertion.reader)"
            case .health: "health"
            case nil: throw Unexpected("no more events")
            }
        }

        mutating func insertion() async throws -> Insertion {
            while let event = await iterator.next(isolation: #isolation) {
                if case .inserted(let insertion, _) = event { return insertion }
            }
            throw Unexpected("no more events")
        }
    }

    /// A card that needs a minute for each answer, and reports when a command has arrived.
    private struct SlowCard: VirtualCardDescription {
        let hasCommand: OneShot<Void>

        func makeCard() throws(Malformed) -> VirtualCard {
            var options = VirtualCardOptions()
            options.latency = 60_000
            return try VirtualCard(Software(hasCommand: hasCommand), options)
        }

        private final class Software: VirtualCardSoftware {
            private let hasCommand: OneShot<Void>
            let historicalBytes: [UInt8] = []
            let counters: [JSON.Member] = []

            init(hasCommand: OneShot<Void>) { self.hasCommand = hasCommand }

            func process(_ command: [UInt8]) -> [UInt8] {
                hasCommand.fill(())
                return [0x90, 0x00]
            }

            func reset() {}
        }
    }

    private static func insert(
        _ description: (any VirtualCardDescription)? = nil,
        into readers: VirtualReaders
    ) async throws -> Insertion {
        #expect(try await readers.insert(description, into: "Simulator"))
        var events = Events(readers)
        return try await events.insertion()
    }

    private static let read = CommandAPDU(0x00, 0xB0, 0x9E, 0x00, le: 256)
    private static let status = CommandAPDU(
        0x00,
        0x22,
        0xC1,
        0xA4,
        data: hex("800A04007F0007020204020283010384010D")
    )

    @Test("the readers are present at start under their names, each with a card that is not inserted")
    func names() async throws {
        let readers = VirtualReaders(count: 3, kinds: [VirtualEIDKind()])
        var events = Events(readers)
        var seen: [String] = []
        for _ in 0..<3 { seen.append(try await events.next()) }
        #expect(seen == ["added Simulator", "added Simulator 2", "added Simulator 3"])
        #expect(try await readers.insert(nil, into: "Simulator 2"))
        #expect(try await events.next() == "inserted Simulator 2 15")
        await readers.removeCard(from: "Simulator 2")
        #expect(try await events.next() == "withdrawn Simulator 2")
        await readers.removeCard(from: "Simulator 2")
        await readers.removeCard(from: "Simulator 9")
        #expect(try await readers.insert(nil, into: "Simulator 3"))
        #expect(try await events.next() == "inserted Simulator 3 15")
    }

    @Test("an unknown reader, an occupied reader and an invalid trust point are refused")
    func refusals() async throws {
        #expect(throws: Malformed.self) { try VirtualEIDKind(trustPoint: [0x7F, 0x21]) }
        #expect(try await !readers.insert(nil, into: "Simulator 2"))
        #expect(try await readers.insert(nil, into: "Simulator"))
        #expect(try await !readers.insert(nil, into: "Simulator"))
    }

    @Test("a card that is out of the reader keeps its state, and a description replaces the card")
    func cardOutOfReader() async throws {
        var description = VirtualEIDDescription()
        description.retryCounter = 2
        let first = try await Self.insert(description, into: readers)
        let connection = try await readers.connect(first)
        #expect(try await connection.transmit(Self.status).status == StatusWord(0x63C2))
        await readers.removeCard(from: "Simulator")
        let second = try await Self.insert(into: readers)
        #expect(second.number > first.number)
        let again = try await readers.connect(second)
        #expect(try await again.transmit(Self.status).status == StatusWord(0x63C2))
        await readers.removeCard(from: "Simulator")
        let fresh = try await readers.connect(try await Self.insert(VirtualEIDDescription(), into: readers))
        #expect(try await fresh.transmit(Self.status).status == .ok)
    }

    @Test("a kept card comes back with its state after a card of another kind, and a new one without kept")
    func keptCard() async throws {
        func put(_ json: String) async throws -> ObjectIdentifier? {
            await readers.removeCard(from: "Simulator")
            let description = try readers.describe(simulator: nil, card: try JSON(json.utf8))
            #expect(try await readers.insert(description, into: "Simulator"))
            return await readers.card(in: "Simulator").map { ObjectIdentifier($0) }
        }
        let first = try await put(#"{"kind":"eid"}"#)
        let kept = #"{"kind":"eid","kept":true}"#
        #expect(try await put(kept) == first)
        let second = try await put(#"{"kind":"eid"}"#)
        #expect(second != first)
        #expect(try await put(kept) == second)
        #expect(throws: Malformed.self) {
            try readers.describe(simulator: nil, card: try JSON(#"{"kept":1}"#.utf8))
        }
    }

    @Test("a wrong description is refused by entry name, and the existing card stays")
    func invalid() async throws {
        var description = VirtualEIDDescription()
        description.files = [.init(fileID: 0x0101, shortFileID: 0x01, content: [1])]
        description.retryCounter = 2
        let insertion = try await Self.insert(description, into: readers)
        await readers.removeCard(from: "Simulator")
        var wrong = VirtualEIDDescription()
        wrong.files = [.init(fileID: 0x0101, shortFileID: 0x1F, content: [])]
        await #expect(throws: Malformed("files[0].shortFileId is not from 01 to 1E")) {
            _ = try await readers.insert(wrong, into: "Simulator")
        }
        let next = try await Self.insert(into: readers)
        #expect(next.number == insertion.number + 1)
        #expect(await readers.cardState(in: "Simulator")?.retryCounter == 2)
    }

    @Test("a connection is valid for one insertion")
    func binding() async throws {
        let first = try await Self.insert(into: readers)
        let connection = try await readers.connect(first)
        #expect(try await connection.transmit(Self.read).status == .ok)
        await readers.removeCard(from: "Simulator")
        await #expect(throws: CardError.removed) { try await connection.transmit(Self.read) }
        let second = try await Self.insert(into: readers)
        await #expect(throws: CardError.removed) { try await connection.transmit(Self.read) }
        await #expect(throws: CardError.removed) { _ = try await readers.connect(first) }
        #expect(try await readers.connect(second).transmit(Self.read).status == .ok)
        #expect(await readers.cardState(in: "Simulator")?.apdus == 1)
    }

    @Test("a card has one connection, and deallocating the connection releases the card")
    func holding() async throws {
        let insertion = try await Self.insert(into: readers)
        var connection: (any CardConnection)? = try await readers.connect(insertion)
        await #expect(throws: CardError.exclusive) { _ = try await readers.connect(insertion) }
        await connection?.disconnect(reset: false)
        await #expect(throws: CardError.cancelled) {
            _ = try await connection?.transmit(Self.read)
        }
        connection = try await readers.connect(insertion)
        #expect(try await connection?.transmit(Self.read).status == .ok)
        connection = nil
        #expect(try await readers.connect(insertion).transmit(Self.read).status == .ok)
    }

    @Test("only a disconnect with reset clears the state of the card", arguments: [false, true])
    func reset(reset: Bool) async throws {
        let insertion = try await Self.insert(into: readers)
        let connection = try await readers.connect(insertion)
        _ = try await connection.transmit(CommandAPDU(0x00, 0xA4, 0x02, 0x0C, data: [0x01, 0x1C]))
        await connection.disconnect(reset: reset)
        let next = try await readers.connect(insertion)
        let answer = try await next.transmit(CommandAPDU(0x00, 0xB0, 0x00, 0x00, le: 256))
        #expect(answer.status == (reset ? StatusWord(0x6A82) : .ok))
    }

    @Test("a removal fault is reported, and the card is out of the reader")
    func fault() async throws {
        var description = VirtualEIDDescription()
        description.options.faults = [.init(afterAPDU: 1, action: .remove)]
        var events = Events(readers)
        _ = try await events.next()
        #expect(try await readers.insert(description, into: "Simulator"))
        let connection = try await readers.connect(try await events.insertion())
        #expect(try await connection.transmit(Self.read).status == .ok)
        await #expect(throws: CardError.removed) { try await connection.transmit(Self.read) }
        #expect(try await events.next() == "withdrawn Simulator")
        #expect(try await readers.insert(nil, into: "Simulator"))
        #expect(try await events.next() == "inserted Simulator 15")
    }

    @Test("missing and truncated answers are errors of a mute card")
    func mute() async throws {
        var description = VirtualEIDDescription()
        description.options.faults = [.init(afterAPDU: 0, action: .mute), .init(afterAPDU: 1, action: .truncate)]
        let connection = try await readers.connect(try await Self.insert(description, into: readers))
        await #expect(throws: CardError.mute) { try await connection.transmit(Self.read) }
        await #expect(throws: CardError.mute) { try await connection.transmit(CommandAPDU(0x00, 0xC0, 0, 0)) }
        #expect(try await connection.transmit(Self.read).status == .ok)
    }

    @Test("the removal of a slow card ends a pending command")
    func removalWhileWaiting() async throws {
        let hasCommand = OneShot<Void>()
        let connection = try await readers.connect(
            try await Self.insert(SlowCard(hasCommand: hasCommand), into: readers)
        )
        let answer = Task { try await connection.transmit(Self.read) }
        await hasCommand.value(whenCancelled: ())
        await readers.removeCard(from: "Simulator")
        await #expect(throws: CardError.removed) { try await answer.value }
    }

    @Test("a card description can add a keypad, and the change is reported")
    func keypadChanges() async throws {
        var events = Events(readers)
        _ = try await events.next()
        var description = VirtualEIDDescription()
        description.hasKeypad = true
        #expect(try await readers.insert(description, into: "Simulator"))
        #expect(try await events.next() == "changed Simulator keypad")
        let insertion = try await events.insertion()
        #expect(try await readers.connect(insertion) is any KeypadConnection)
        await readers.removeCard(from: "Simulator")
        #expect(try await events.next() == "withdrawn Simulator")
        #expect(try await readers.insert(VirtualEIDDescription(), into: "Simulator"))
        #expect(try await events.next() == "changed Simulator")
        let connection = try await readers.connect(try await events.insertion())
        #expect(!(connection is any KeypadConnection))
    }

    @Test("a keypad reader runs PACE, changes the PIN and keeps the channel")
    func keypad() async throws {
        var description = VirtualEIDDescription()
        (description.hasKeypad, description.retryCounter) = (true, 1)
        let insertion = try await Self.insert(description, into: readers)
        let connection = try #require(try await readers.connect(insertion) as? any KeypadConnection)
        #expect(try await connection.modifyPIN() == StatusWord(0x6982))
        let suspended = try await connection.establishPACE(.init(passwordID: 3))
        #expect(suspended.outcome == .failed(0xF002_6985))
        let can = try await connection.establishPACE(.init(passwordID: 2))
        #expect(can.outcome == .established)
        #expect(can.mseStatus == .ok)
        #expect(can.cardAccess.first == 0x31)
        let pin = try await connection.establishPACE(.init(passwordID: 3))
        #expect(pin.outcome == .established)
        #expect(pin.mseStatus == StatusWord(0x63C1))
        #expect(pin.idPICC.count == 32)
        #expect(pin.idPICC != can.idPICC)
        #expect(try await connection.modifyPIN() == .ok)
        #expect(try await connection.transmit(CommandAPDU(0x00, 0x2C, 0x03, 0x03)).status == StatusWord(0x6982))
        try await connection.destroyPACE()
        #expect(try await connection.transmit(Self.status).status == .ok)
        let unknown = try await connection.establishPACE(.init(passwordID: 7))
        #expect(unknown.outcome == .failed(0xE000_0003))
    }

    @Test("a keypad reader sends the CHAT and returns the trust point names")
    func keypadCHAT() async throws {
        var description = VirtualEIDDescription()
        description.hasKeypad = true
        description.transportPIN = SecretBox(Secret("54321".utf8))
        let insertion = try await Self.insert(description, into: readers)
        let connection = try #require(try await readers.connect(insertion) as? any KeypadConnection)
        let chat = OnlineTerminal.allRights.object.encoded
        let result = try await connection.establishPACE(.init(passwordID: 3, chat: chat))
        #expect(result.outcome == .established)
        #expect(result.carCurrent == Array("DETESTeIDBG00001".utf8))
        #expect(try await connection.modifyPIN() == .ok)
        #expect(await readers.cardState(in: "Simulator")?.isTransport == false)
    }
}
