// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import ISO7816
import NFCTestSupport
import Readers
import TestSupport
import Testing

@testable import ReadersNFC

/// Emulated boards that come, go and fail, through real libnfc.
@Suite("NFC devices", .timeLimit(.minutes(1)))
struct NFCDeviceTests {
    @Test("a board that is pulled is gone with its card, and found again on demand")
    func pulled() async throws {
        var world = try await World()
        let connection = try await world.connect(PICC(application: PICC.echo))
        world.board.unplug()
        await #expect(throws: (any Error).self) { try await connection.transmit(World.echo(1).command) }
        try await world.events.wait(for: "removed \(world.reader)")
        world.field.remove()
        try world.board.plug()
        world.backend.rescan()
        try await world.events.wait(for: "added \(world.reader)")
        let again = try await world.connect(PICC(application: PICC.echo))
        #expect(try await again.transmit(World.echo(5).command) == World.echo(5).answer)
    }

    @Test("a board that is pulled while it looks for a card is noticed, and its health says what to do")
    func pulledIdle() async throws {
        var world = try await World()
        world.board.unplug()
        try await world.events.wait(for: "removed \(world.reader)")
        _ = await world.backend.currentHealth()
        while world.events.checks.first?.advice?.contains("plug the board in") != true {
            _ = try await world.events.next()
        }
        #expect(world.events.checks.first?.name == "nfc \(world.board.connection)")
        try world.board.plug()
        // Whoever asks has perhaps just mended it.
        _ = await world.backend.currentHealth()
        try await world.events.wait(for: "added \(world.reader)")
    }

    @Test("several boards at once, each with its card")
    func several() async throws {
        let boards = try (0..<3).map { _ in try EmulatedPN532() }
        let backend = NFCBackend(devices: boards.map(\.connection))
        var events = Events(backend)
        for board in boards { try await events.wait(for: "added pn532_uart:\(board.path)") }
        for (index, board) in boards.enumerated() {
            board.field.insert(PICC(index == 1 ? .b : .a, application: PICC.echo))
        }
        while events.insertions.count < 3 { _ = try await events.next() }
        #expect(Set(events.insertions.values.map(\.number)).count == 3)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for insertion in events.insertions.values {
                group.addTask {
                    let connection = try await backend.connect(insertion)
                    for count in [1, 300, 5000] {
                        #expect(try await connection.transmit(World.echo(count).command) == World.echo(count).answer)
                    }
                    await connection.disconnect(reset: true)
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("closing ends the search of the chip and turns the fields off, with and without a card")
    func closing() async throws {
        for hasCard in [false, true] {
            var world = try await World()
            if hasCard { _ = try await world.connect(PICC(application: PICC.echo)) }
            #expect(world.field.isOn)
            await world.backend.close()
            // On a busy machine it may take longer than a daemon that ends can wait.
            try await until { !world.field.isOn }
            while (try? await world.events.next()) != nil {}
        }
    }

    @Test("a chip that takes no raw frames serves short commands, and says so")
    func noFrames() async throws {
        var nature = EmulatedPN532.Nature()
        nature.sendsFrames = false
        let board = try EmulatedPN532(nature)
        let backend = NFCBackend(devices: [board.connection])
        var stream = backend.events.makeAsyncIterator()
        board.field.insert(PICC(application: PICC.echo))
        var extended: Bool?
        var found: Insertion?
        while found == nil, let event = await stream.next() {
            switch event {
            case .changed(let reader): extended = reader.hasExtendedLength
            case .inserted(let insertion, _): found = insertion
            default: break
            }
        }
        #expect(extended == false)
        let connection = try await backend.connect(try #require(found))
        for count in [1, 100, 255] {
            #expect(try await connection.transmit(World.echo(count).command) == World.echo(count).answer)
        }
        await #expect(throws: CardError.tooLong) { try await connection.transmit(World.echo(256).command) }
        await #expect(throws: CardError.tooLong) {
            try await connection.transmit(CommandAPDU(0, 0xB0, 0, 0, le: 300))
        }
        #expect(try await connection.transmit(CommandAPDU(0, 0xB0, 0, 0, le: 256)).data.count == 256)
        await connection.disconnect(reset: true)
        board.field.remove()
        while let event = await stream.next() {
            if case .withdrawn = event { break }
        }
    }

    @Test("a chip without type B finds cards of type A")
    func noTypeB() async throws {
        var nature = EmulatedPN532.Nature()
        nature.hasTypeB = false
        var world = try await World(nature)
        let connection = try await world.connect(PICC(application: PICC.echo))
        #expect(try await connection.transmit(World.echo(5).command) == World.echo(5).answer)
    }

    /// Waiting is what is measured here, so this test sleeps.
    @Test("a board without a card wakes nobody")
    func idle() async throws {
        let world = try await World()
        try await Task.sleep(for: .milliseconds(300))
        let commands = world.board.commands
        try await Task.sleep(for: .seconds(2))
        // The chip has been asked once, and looks for itself.
        #expect(world.board.commands == commands)
        _ = world
    }

    // MARK: Health

    /// The advice for a device that cannot be opened.
    private func advice(_ device: String) async throws -> String {
        var events = Events(NFCBackend(devices: [device]))
        while events.checks.isEmpty { _ = try await events.next() }
        let check = try #require(events.checks.first)
        #expect(!check.ok && check.name == "nfc \(device)")
        return check.advice ?? ""
    }

    @Test("a board that is silent, or at another speed, is told from one that is not there")
    func lines() async throws {
        var nature = EmulatedPN532.Nature()
        nature.isDumb = true
        let silent = try EmulatedPN532(nature)
        #expect(try await advice(silent.connection).contains("no answer"))
        nature.isDumb = false
        nature.speed = speed_t(B9600)
        let slow = try EmulatedPN532(nature)
        #expect(try await advice(slow.connection).contains("wrong speed: the board answers at 9600 baud"))
        #expect(try await advice("pn532_uart:/nowhere/ttyUSB0").contains("there is no /nowhere/ttyUSB0"))
        #expect(try await advice("pn532_uart:/dev/null").contains("/dev/null is no serial line"))
        #expect(try await advice("not a device").contains("no connection string"))
    }
}
