// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import NFCTestSupport
import Readers
import ReadersNFC
import Synchronization
import TestSupport
import Testing

/// Cards in the field of an emulated PN532, through real libnfc.
@Suite("NFC cards", .timeLimit(.minutes(5)))
struct NFCCardTests {
    @Test("a card comes and goes, with the ATR that PC/SC readers build", arguments: [PICC.Technology.a, .b])
    func comingAndGoing(technology: PICC.Technology) async throws {
        let board = try EmulatedPN532()
        let backend = NFCBackend(devices: [board.connection])
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
        "commands and answers of all lengths, also those that libnfc's own framing does not survive",
        arguments: [PICC.Technology.a, .b],
        [1, 200, 255, 256, 257, 262, 263, 264, 1000, 30_000, 65_535]
    )
    func lengths(technology: PICC.Technology, count: Int) async throws {
        var world = try await World()
        let connection = try await world.connect(PICC(technology, application: PICC.echo))
        let (command, answer) = World.echo(count)
        #expect(try await connection.transmit(command) == answer)
        let read = try await connection.transmit(CommandAPDU(0, 0xB0, 0, 0, le: min(count, 65_534)))
        #expect(read.data == (0..<min(count, 65_534)).map { UInt8(truncatingIfNeeded: $0) })
        await connection.disconnect(reset: true)
    }

    @Test("our own ATTRIB makes frames of 256 bytes; a card that cannot be woken up keeps the chip's")
    func attrib() async throws {
        var world = try await World()
        let connection = try await world.connect(PICC(.b, application: PICC.echo))
        #expect(world.field.takeLog().contains([0x1D, 0x08, 0x12, 0x34, 0x56, 0x00, 0x08, 0x01, 0x00]))
        await connection.disconnect(reset: false)
        world.field.remove()
        try await world.events.wait(for: "withdrawn \(world.reader)")
        // The frame after the deselection is WUPB.
        world.field.plan([1: .answerLost])
        let other = try await world.connect(PICC(.b, application: PICC.echo))
        let (command, answer) = World.echo(500)
        #expect(try await other.transmit(command) == answer)
        #expect(world.field.faultsLeft == 0)
    }

    @Test("a card that takes its time is waited for, with and without extensions")
    func slow() async throws {
        var world = try await World()
        var card = PICC(waitingTimeCode: 10, application: PICC.echo)
        card.extensions = 4
        card.extensionMultiplier = 5
        let connection = try await world.connect(card)
        let next = world.field.exchanges
        // Within FWT (309 ms), and within five times that.
        world.field.plan([next: .slow(250), next + 2: .slow(1200)])
        let (command, answer) = World.echo(10)
        #expect(try await connection.transmit(command) == answer)
        #expect(world.field.faultsLeft == 0)
        #expect(world.field.card?.commands == 1)
    }

    @Test("a card that leaves during a command is gone, and comes back as another insertion")
    func removed() async throws {
        var world = try await World()
        for fault in [RadioField.Fault.removed, .removedAfter] {
            let connection = try await world.connect(PICC(application: PICC.echo))
            world.field.plan([world.field.exchanges: fault])
            await #expect(throws: CardError.removed) { try await connection.transmit(World.echo(10).command) }
            try await world.events.wait(for: "withdrawn \(world.reader)")
            await #expect(throws: CardError.removed) { try await connection.transmit(World.echo(10).command) }
            await connection.disconnect(reset: true)
        }
        #expect(world.events.insertions[world.reader]?.number == 2)
    }

    @Test("a card that loses power in the middle is mute, and usable again by the same insertion")
    func powerLost() async throws {
        var world = try await World()
        let connection = try await world.connect(PICC(application: PICC.echo))
        world.field.plan([world.field.exchanges + 1: .powerLost])
        let (command, answer) = World.echo(600)
        await #expect(throws: CardError.mute) { try await connection.transmit(command) }
        #expect(try await connection.transmit(command) == answer)
        await connection.disconnect(reset: true)
        let insertion = try #require(world.events.insertions[world.reader])
        _ = try await world.backend.connect(insertion)
    }

    @Test("a hostile card ends in an error, and the next card is served", arguments: RadioField.Malice.allCases)
    func hostile(malice: RadioField.Malice) async throws {
        var world = try await World()
        let connection = try await world.connect(PICC(application: PICC.echo))
        world.field.plan([:], malice: (world.field.exchanges, malice))
        await #expect(throws: CardError.mute) { try await connection.transmit(World.echo(1000).command) }
        world.field.plan([:])
        world.field.remove()
        try await world.events.wait(for: "withdrawn \(world.reader)")
        await connection.disconnect(reset: true)
        let next = try await world.connect(PICC(.b, application: PICC.echo))
        #expect(try await next.transmit(World.echo(300).command) == World.echo(300).answer)
    }

    @Test(
        "a card with a senseless ATS is a mute one, which stays until it is taken away",
        arguments: [[], [0x00], [0xFF], [0x02, 0x70], [UInt8](repeating: 0xFF, count: 254)] as [[UInt8]]
    )
    func hostileActivation(ats: [UInt8]) async throws {
        var world = try await World()
        var card = PICC(application: PICC.echo)
        card.ats = ats
        let connection = try await world.connect(card)
        await #expect(throws: CardError.mute) { try await connection.transmit(World.echo(1).command) }
        await connection.disconnect(reset: true)
        world.field.remove()
        #expect(try await world.events.next() == "withdrawn \(world.reader)")
    }

    @Test("a card without ISO/IEC 14443-4 is told as a card, and knows no instruction")
    func storageCard() async throws {
        var world = try await World()
        var card = PICC(application: PICC.echo)
        card.selectAnswer = 0x08
        let connection = try await world.connect(card)
        #expect(try await connection.transmit(World.echo(1).command) == ResponseAPDU(StatusWord(0x6D00)))
        await connection.disconnect(reset: true)
        world.field.remove()
        #expect(try await world.events.next() == "withdrawn \(world.reader)")
    }

    @Test("a card is reset when its connection ends that way, or is dropped, and not otherwise")
    func reset() async throws {
        var world = try await World()
        let resets = Mutex(0)
        let card = PICC(onReset: { resets.withLock { $0 += 1 } }, application: PICC.echo)
        var connection: (any CardConnection)? = try await world.connect(card)
        let insertion = try #require(world.events.insertions[world.reader])
        let (command, answer) = World.echo(3)
        let before = resets.withLock { $0 }
        #expect(try await connection?.transmit(command) == answer)
        await connection?.disconnect(reset: false)
        #expect(resets.withLock { $0 } == before)
        await #expect(throws: CardError.self) { try await connection?.transmit(command) }

        connection = try await world.backend.connect(insertion)
        #expect(try await connection?.transmit(command) == answer)
        await connection?.disconnect(reset: true)
        let after = resets.withLock { $0 }
        #expect(after > before)

        connection = try await world.backend.connect(insertion)
        #expect(try await connection?.transmit(command) == answer)
        connection = nil
        // Whoever comes next waits for that.
        connection = try await world.backend.connect(insertion)
        #expect(try await connection?.transmit(command) == answer)
        #expect(resets.withLock { $0 } > after)
    }

    @Test("the actor that drives a card sends its commands without a change of threads, and outlives the card")
    func executor() async throws {
        var world = try await World()
        let connection = try await world.connect(PICC(application: PICC.echo))
        let user = try #require(CardUser(connection))
        let (command, answer) = World.echo(300)
        #expect(try await user.transmitUndisturbed(command) == answer)
        world.field.remove()
        try await world.events.wait(for: "withdrawn \(world.reader)")
        await #expect(throws: CardError.removed) { try await user.transmitUndisturbed(command) }
        world.field.insert(PICC(application: PICC.echo))
        try await world.events.wait(for: "inserted \(world.reader)")
        await #expect(throws: CardError.removed) { try await user.transmitUndisturbed(command) }
    }

    @Test("a second connection waits for the first, or for the end of the card")
    func turns() async throws {
        var world = try await World()
        let first = try await world.connect(PICC(application: PICC.echo))
        let insertion = try #require(world.events.insertions[world.reader])
        let backend = world.backend
        let second = Task { try await backend.connect(insertion) }
        let third = Task { try await backend.connect(insertion) }
        third.cancel()
        await #expect(throws: CardError.other("cancelled")) { try await third.value }
        await first.disconnect(reset: true)
        let connection = try await second.value
        let fourth = Task { try await backend.connect(insertion) }
        world.field.remove()
        await #expect(throws: CardError.removed) { try await fourth.value }
        await #expect(throws: CardError.removed) { try await connection.transmit(World.echo(1).command) }
    }

    /// That nothing is asked can only be seen in some time, so this test sleeps; nothing is waited for by it.
    @Test("a card that lies there is asked once a second, but not while it may hold a secure channel")
    func presence() async throws {
        var world = try await World()
        let connection = try await world.connect(PICC(application: PICC.echo))
        _ = try await connection.transmit(World.echo(1).command)
        _ = world.field.takeLog()
        let (field, exchanges) = (world.field, world.field.exchanges)
        try await until { field.exchanges >= exchanges + 2 }
        let questions = field.takeLog()
        #expect(questions.allSatisfy { $0.count == 1 && $0[0] & 0xFE == 0xB2 })
        // GENERAL AUTHENTICATE, and a protected command after it.
        for command in [CommandAPDU(0x10, 0x86, 0, 0, data: [0x7C, 0]), CommandAPDU(0x0C, 0xB0, 0, 0, le: 4)] {
            _ = try await connection.transmit(command)
            _ = world.field.takeLog()
            try await Task.sleep(for: .milliseconds(1800))
            #expect(world.field.takeLog().isEmpty)
        }
        // A command in the clear ends a channel.
        _ = try await connection.transmit(World.echo(1).command)
        world.field.remove()
        try await world.events.wait(for: "withdrawn \(world.reader)")
    }
}

private actor CardUser {
    private nonisolated let connection: any CardConnection
    private nonisolated let executor: any SerialExecutor
    private var disturbances = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init?(_ connection: any CardConnection) {
        guard let executor = connection.executor else { return nil }
        (self.connection, self.executor) = (connection, executor)
    }

    /// Another job, which waits for the actor to be free, does not run before the answer is there.
    func transmitUndisturbed(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let other = Task { disturbances += 1 }
        let before = disturbances
        let answer = try await connection.transmit(command)
        #expect(disturbances == before)
        await other.value
        return answer
    }
}
