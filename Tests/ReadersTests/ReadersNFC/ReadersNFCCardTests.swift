// SPDX-License-Identifier: GPL-3.0-or-later
import Drivers
import ISO7816
import NFCTestSupport
import Readers
import ReadersNFC
import Synchronization
import Taps
import TestSupport
import Testing

/// Cards in the field of an emulated PN532, through real libnfc.
@Suite("NFC cards", .timeLimit(.minutes(5)))
struct NFCCardTests {
    private let fixture: NFCFixture

    init() async throws { fixture = try await NFCFixture() }

    @Test(
        "the insertion of a card, with the ATR that PC/SC readers build, and its removal are reported",
        arguments: [PICC.Technology.a, .b]
    )
    func comingAndGoing(technology: PICC.Technology) async throws {
        let board = try EmulatedPN532()
        let backend = DriverBackend.nfc(devices: [board.connection], heartbeat: .patient)
        var stream = backend.events.makeAsyncIterator()
        board.field.insert(PICC(technology, application: PICC.echo))
        var answerToReset: [UInt8]?
        while answerToReset == nil, let event = await stream.next() {
            if case .inserted(_, let bytes) = event { answerToReset = bytes }
        }
        let content: [UInt8] =
            technology == .a ? [0x80, 0x31, 0xF8] : [0, 0, 0, 0, 0x00, 0x81, 0x80, 0x00]
        #expect(answerToReset?.dropLast() == [0x3B, 0x80 | UInt8(content.count), 0x80, 0x01] + content)
        board.field.remove()
        while let event = await stream.next() {
            if case .withdrawn = event { break }
        }
    }

    @Test(
        "commands and answers of all lengths are carried, also where libnfc's own block protocol fails",
        arguments: [PICC.Technology.a, .b],
        [1, 200, 255, 256, 257, 262, 263, 264, 1000, 30_000, 65_535]
    )
    func lengths(technology: PICC.Technology, count: Int) async throws {
        let connection = try await fixture.connect(PICC(technology, application: PICC.echo))
        let (command, answer) = NFCFixture.echo(count)
        #expect(try await connection.transmit(command) == answer)
        let read = try await connection.transmit(CommandAPDU(0, 0xB0, 0, 0, le: min(count, 65_534)))
        #expect(read.data == (0..<min(count, 65_534)).map { UInt8(truncatingIfNeeded: $0) })
        await connection.disconnect(reset: true)
    }

    @Test("the driver's ATTRIB asks for frames of 256 bytes; a card that cannot be woken up keeps the chip's ATTRIB")
    func attrib() async throws {
        let connection = try await fixture.connect(PICC(.b, application: PICC.echo))
        #expect(fixture.field.takeLog().contains([0x1D, 0x08, 0x12, 0x34, 0x56, 0x00, 0x08, 0x01, 0x00]))
        await connection.disconnect(reset: false)
        fixture.field.remove()
        try await fixture.events.wait(for: "withdrawn \(fixture.reader)")
        // Exchange 1 is WUPB, after the deselection.
        fixture.field.plan([1: .answerLost])
        let other = try await fixture.connect(PICC(.b, application: PICC.echo))
        let (command, answer) = NFCFixture.echo(500)
        #expect(try await other.transmit(command) == answer)
        #expect(fixture.field.faultsLeft == 0)
    }

    @Test("a slow card gets its waiting time, with and without extensions")
    func slow() async throws {
        var card = PICC(waitingTimeCode: 10, application: PICC.echo)
        card.extensions = 4
        card.extensionMultiplier = 5
        let connection = try await fixture.connect(card)
        let next = fixture.field.exchanges
        // Within FWT (309 ms), and within the five times of the extension.
        fixture.field.plan([next: .slow(250), next + 2: .slow(1200)])
        let (command, answer) = NFCFixture.echo(10)
        #expect(try await connection.transmit(command) == answer)
        #expect(fixture.field.faultsLeft == 0)
        #expect(fixture.field.card?.commands == 1)
    }

    @Test("a card that leaves during a command comes back as a new insertion")
    func removed() async throws {
        for fault in [RadioField.Fault.removed, .removedAfter] {
            let connection = try await fixture.connect(PICC(application: PICC.echo))
            fixture.field.plan([fixture.field.exchanges: fault])
            await #expect(throws: CardError.removed) { try await connection.transmit(NFCFixture.echo(10).command) }
            try await fixture.events.wait(for: "withdrawn \(fixture.reader)")
            await #expect(throws: CardError.removed) { try await connection.transmit(NFCFixture.echo(10).command) }
            await connection.disconnect(reset: true)
        }
        #expect(fixture.events.insertions[fixture.reader]?.number == 2)
    }

    @Test("a card that loses power during a command is mute, and stays the same insertion")
    func powerLost() async throws {
        let connection = try await fixture.connect(PICC(application: PICC.echo))
        fixture.field.plan(.powerLost, afterBlocks: 1)
        let (command, answer) = NFCFixture.echo(600)
        await #expect(throws: CardError.mute) { try await connection.transmit(command) }
        #expect(try await connection.transmit(command) == answer)
        await connection.disconnect(reset: true)
        let insertion = try #require(fixture.events.insertions[fixture.reader])
        _ = try await fixture.backend.connect(insertion)
    }

    @Test("a command to a hostile card fails, and the next card works", arguments: RadioField.Attack.allCases)
    func hostile(attack: RadioField.Attack) async throws {
        let connection = try await fixture.connect(PICC(application: PICC.echo))
        fixture.field.plan([:], attack: (fixture.field.exchanges, attack))
        await #expect(throws: CardError.mute) { try await connection.transmit(NFCFixture.echo(1000).command) }
        fixture.field.plan([:])
        fixture.field.remove()
        try await fixture.events.wait(for: "withdrawn \(fixture.reader)")
        await connection.disconnect(reset: true)
        let next = try await fixture.connect(PICC(.b, application: PICC.echo))
        #expect(try await next.transmit(NFCFixture.echo(300).command) == NFCFixture.echo(300).answer)
    }

    @Test(
        "a card with an invalid ATS is a mute card until its removal",
        arguments: [[], [0x00], [0xFF], [0x02, 0x70], [UInt8](repeating: 0xFF, count: 254)] as [[UInt8]]
    )
    func hostileActivation(ats: [UInt8]) async throws {
        var card = PICC(application: PICC.echo)
        card.ats = ats
        let connection = try await fixture.connect(card)
        await #expect(throws: CardError.mute) { try await connection.transmit(NFCFixture.echo(1).command) }
        await connection.disconnect(reset: true)
        fixture.field.remove()
        #expect(try await fixture.events.next() == "withdrawn \(fixture.reader)")
    }

    @Test("a card without ISO/IEC 14443-4 is reported as a card, and supports no instruction")
    func storageCard() async throws {
        var card = PICC(application: PICC.echo)
        card.selectAnswer = 0x08
        let connection = try await fixture.connect(card)
        #expect(try await connection.transmit(NFCFixture.echo(1).command) == ResponseAPDU(StatusWord(0x6D00)))
        await connection.disconnect(reset: true)
        fixture.field.remove()
        #expect(try await fixture.events.next() == "withdrawn \(fixture.reader)")
    }

    @Test(
        "a tag has its UID and its pages, as with a PC/SC reader, also if the chip takes no frames",
        arguments: [true, false]
    )
    func tag(sendsFrames: Bool) async throws {
        var options = EmulatedPN532.Options()
        options.sendsFrames = sendsFrames
        let fixture = try await NFCFixture(options)
        let uid: [UInt8] = [0x04, 0xA1, 0xB2, 0xC3, 0xD4, 0xE5, 0xF6]
        var card = PICC(identifier: uid, application: PICC.echo)
        card.selectAnswer = 0x00
        card.memory = (0..<64).map { UInt8($0) }
        let connection = try await fixture.connect(card)
        #expect(fixture.events.answersToReset[fixture.reader].map { TagType(answerToReset: $0) } == .mifareUltralight)
        func ask(_ command: String) async throws -> String {
            let command = try #require(CommandAPDU(bytes: hex(command)))
            return hex(try await connection.transmit(command).bytes)
        }
        #expect(try await ask("FFCA000000") == hex(uid) + "9000")
        #expect(try await ask("FFCA000004") == "6C07")
        #expect(try await ask("FFB0000310") == hex(Array(12..<28)) + "9000")
        #expect(try await ask("FFB0000304") == hex(Array(12..<16)) + "9000")
        // A page behind the memory: the tag is selected again, so the next command works.
        #expect(try await ask("FFB0001010") == "6A82")
        #expect(try await ask("FFB0000F10") == hex(Array(60..<64) + Array(0..<12)) + "9000")
        #expect(try await ask("FF82000006") == "6A81")
        #expect(try await ask("00A4040000") == "6D00")
        fixture.field.remove()
        await #expect(throws: CardError.removed) { try await ask("FFB0000310") }
    }

    @Test("commands for the reader do not reach a card, and end no channel", arguments: [PICC.Technology.a, .b])
    func readerCommands(technology: PICC.Technology) async throws {
        let connection = try await fixture.connect(PICC(technology, application: PICC.echo))
        let uid = CommandAPDU(0xFF, 0xCA, 0x00, 0x00, le: 256)
        #expect(try await connection.transmit(uid) == ResponseAPDU(data: [0x08, 0x12, 0x34, 0x56], .ok))
        #expect(fixture.field.card?.commands == 0)
        #expect(try await connection.transmit(NFCFixture.echo(9).command) == NFCFixture.echo(9).answer)
    }

    @Test("a card is reset by a disconnection with reset and by a dropped connection, and not otherwise")
    func reset() async throws {
        let resets = Mutex(0)
        let card = PICC(onReset: { resets.withLock { $0 += 1 } }, application: PICC.echo)
        var connection: (any CardConnection)? = try await fixture.connect(card)
        let insertion = try #require(fixture.events.insertions[fixture.reader])
        let (command, answer) = NFCFixture.echo(3)
        let before = resets.withLock { $0 }
        #expect(try await connection?.transmit(command) == answer)
        await connection?.disconnect(reset: false)
        #expect(resets.withLock { $0 } == before)
        await #expect(throws: CardError.self) { try await connection?.transmit(command) }

        connection = try await fixture.backend.connect(insertion)
        #expect(try await connection?.transmit(command) == answer)
        await connection?.disconnect(reset: true)
        let after = resets.withLock { $0 }
        #expect(after > before)

        connection = try await fixture.backend.connect(insertion)
        #expect(try await connection?.transmit(command) == answer)
        connection = nil
        // The next connection waits for the reset.
        connection = try await fixture.backend.connect(insertion)
        #expect(try await connection?.transmit(command) == answer)
        #expect(resets.withLock { $0 } > after)
    }

    @Test("a second connection waits for the end of the first one or of the insertion")
    func turns() async throws {
        let first = try await fixture.connect(PICC(application: PICC.echo))
        let insertion = try #require(fixture.events.insertions[fixture.reader])
        let backend = fixture.backend
        let second = Task { try await backend.connect(insertion) }
        let third = Task { try await backend.connect(insertion) }
        third.cancel()
        await #expect(throws: CardError.cancelled) { try await third.value }
        await first.disconnect(reset: true)
        let connection = try await second.value
        let fourth = Task { try await backend.connect(insertion) }
        fixture.field.remove()
        await #expect(throws: CardError.removed) { try await fourth.value }
        await #expect(throws: CardError.removed) { try await connection.transmit(NFCFixture.echo(1).command) }
    }

    @Test("the presence of a card is checked every second, but not while the card may hold a secure channel")
    func presence() async throws {
        let boards = try (0..<3).map { _ in try EmulatedPN532() }
        let backend = DriverBackend.nfc(devices: boards.map(\.connection), heartbeat: .patient)
        let events = Events(backend)
        for board in boards { board.field.insert(PICC(application: PICC.echo)) }
        while events.insertions.count < boards.count { _ = try await events.next() }
        // GENERAL AUTHENTICATE, a protected command, and a command that ends every channel.
        let commands = [
            CommandAPDU(0x10, 0x86, 0, 0, data: [0x7C, 0]), CommandAPDU(0x0C, 0xB0, 0, 0, le: 4),
            NFCFixture.echo(1).command,
        ]
        var connections: [any CardConnection] = []
        for (board, command) in zip(boards, commands) {
            let insertion = try #require(events.insertions["pn532_uart:\(board.path)"])
            connections.append(try await backend.connect(insertion))
            _ = try await connections.last?.transmit(command)
            _ = board.field.takeLog()
        }
        // The checks of the last card show that enough time has passed for the others.
        let field = boards[2].field
        let exchanges = field.exchanges
        try await field.wait { field.exchanges >= exchanges + 2 }
        let isPresenceCheck = { (frame: [UInt8]) in frame.count == 1 && frame[0] & 0xFE == 0xB2 }
        #expect(field.takeLog().allSatisfy(isPresenceCheck))
        #expect(boards[0].field.takeLog().isEmpty && boards[1].field.takeLog().isEmpty)
        // A command in the clear ends a channel, and the checks begin again.
        _ = try await connections[0].transmit(NFCFixture.echo(1).command)
        boards[0].field.remove()
        try await events.wait(for: "withdrawn pn532_uart:\(boards[0].path)")
    }
}
