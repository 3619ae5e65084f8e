// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import Host
import ISO7816
import NFCTestSupport
import Readers
import ReadersNFC
import TestSupport
import Testing
import Text

/// Emulated boards that are plugged in, removed and faulty, through real libnfc.
@Suite("NFC devices", .timeLimit(.minutes(5)))
struct NFCDeviceTests {
    @Test("an unplugged board is removed with its card, and found again on demand")
    func pulled() async throws {
        let fixture = try await NFCFixture()
        let connection = try await fixture.connect(PICC(application: PICC.echo))
        fixture.board.unplug()
        await #expect(throws: (any Error).self) { try await connection.transmit(NFCFixture.echo(1).command) }
        try await fixture.events.wait(for: "removed \(fixture.reader)")
        fixture.field.remove()
        try fixture.board.plug()
        fixture.backend.rescan()
        try await fixture.events.wait(for: "added \(fixture.reader)")
        let again = try await fixture.connect(PICC(application: PICC.echo))
        #expect(try await again.transmit(NFCFixture.echo(5).command) == NFCFixture.echo(5).answer)
    }

    @Test("the removal of a board that looks for a card is reported, with advice in the health checks")
    func pulledIdle() async throws {
        let fixture = try await NFCFixture()
        fixture.board.unplug()
        try await fixture.events.wait(for: "removed \(fixture.reader)")
        // A board whose line is gone is opened again when udev reports the line, or on demand.
        _ = await fixture.backend.currentHealth()
        while fixture.events.checks.first?.advice?.contains("plug the board in") != true {
            _ = try await fixture.events.next()
            _ = await fixture.backend.currentHealth()
        }
        #expect(fixture.events.checks.first?.name == "nfc \(fixture.board.connection)")
        try fixture.board.plug()
        // A request for the health looks for the board again.
        _ = await fixture.backend.currentHealth()
        try await fixture.events.wait(for: "added \(fixture.reader)")
    }

    @Test("a board whose line is disturbed again and again soon after it was opened comes back by itself each time")
    func disturbed() async throws {
        let fixture = try await NFCFixture()
        for _ in 0..<4 {
            try await fixture.field.wait { fixture.board.search != nil }
            fixture.board.disturbLine()
            try await fixture.events.wait(for: "removed \(fixture.reader)")
            try await fixture.events.wait(for: "added \(fixture.reader)")
        }
        let connection = try await fixture.connect(PICC(application: PICC.echo))
        #expect(try await connection.transmit(NFCFixture.echo(5).command) == NFCFixture.echo(5).answer)
        // The health checks show the fault with the name of the reader, and its end.
        while fixture.events.checks.contains(where: { !$0.ok }) { _ = try await fixture.events.next() }
    }

    @Test("a board that does not answer at first is opened by itself")
    func late() async throws {
        var options = EmulatedPN532.Options()
        options.isSilent = true
        let board = try EmulatedPN532(options)
        let events = Events(DriverBackend.nfc(devices: [board.connection]))
        while events.checks.isEmpty { _ = try await events.next() }
        #expect(events.checks.first?.advice?.contains("no answer") == true)
        board.startAnswering()
        try await events.wait(for: "added pn532_uart:\(board.path)")
        while events.checks.contains(where: { !$0.ok }) { _ = try await events.next() }
    }

    @Loop private func change(_ driver: NFCDriver, _ devices: [String]) { driver.sources = devices }

    @Test("a rescan closes boards that are no longer configured and opens new ones")
    func renamed() async throws {
        let boards = try (0..<3).map { _ in try EmulatedPN532() }
        let readers = boards.map { "pn532_uart:\($0.path)" }
        let driver = NFCDriver(devices: [boards[0].connection, boards[1].connection])
        let backend = DriverBackend(driver, heartbeat: .patient)
        let events = Events(backend)
        for reader in readers[..<2] { try await events.wait(for: "added \(reader)") }
        boards[0].field.insert(PICC(application: PICC.echo))
        let insertion = try await events.insertion(in: readers[0])
        let connection = try await backend.connect(insertion)
        #expect(try await connection.transmit(NFCFixture.echo(5).command) == NFCFixture.echo(5).answer)

        // The second board has another string for the same line and speed.
        await change(driver, [boards[2].connection, "pn532_uart:\(boards[1].path)"])
        backend.rescan()
        var news: Set<String> = []
        while news.count < 5 {
            let event = try await events.next()
            if !event.hasPrefix("health") { news.insert(event) }
        }
        #expect(
            news == [
                "withdrawn \(readers[0])", "removed \(readers[0])", "added \(readers[2])", "removed \(readers[1])",
                "added \(readers[1])",
            ]
        )
        await #expect(throws: (any Error).self) { try await connection.transmit(NFCFixture.echo(5).command) }
        try await boards[0].field.wait { !boards[0].field.isOn }
        #expect(boards[1].field.isOn && boards[2].field.isOn)

        await change(driver, [])
        backend.rescan()
        try await events.wait(for: "removed \(readers[2])")
    }

    @Test("several boards work at once, each with its card")
    func several() async throws {
        let boards = try (0..<3).map { _ in try EmulatedPN532() }
        let backend = DriverBackend.nfc(devices: boards.map(\.connection), heartbeat: .patient)
        let events = Events(backend)
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
                        #expect(
                            try await connection.transmit(NFCFixture.echo(count).command)
                                == NFCFixture.echo(count).answer
                        )
                    }
                    await connection.disconnect(reset: true)
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("closing the backend ends the search and switches the field off, with and without a card")
    func closing() async throws {
        for hasCard in [false, true] {
            let fixture = try await NFCFixture()
            if hasCard { _ = try await fixture.connect(PICC(application: PICC.echo)) }
            #expect(fixture.field.isOn)
            await fixture.backend.close()
            // `close` waits only 0.7 s. A busy machine can take longer.
            let field = fixture.field
            try await field.wait { !field.isOn }
            while (try? await fixture.events.next()) != nil {}
        }
    }

    @Test("a chip that takes no raw frames carries short commands, and the reader is reported without extended length")
    func noFrames() async throws {
        var options = EmulatedPN532.Options()
        options.sendsFrames = false
        let board = try EmulatedPN532(options)
        let backend = DriverBackend.nfc(devices: [board.connection], heartbeat: .patient)
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
            #expect(try await connection.transmit(NFCFixture.echo(count).command) == NFCFixture.echo(count).answer)
        }
        await #expect(throws: CardError.tooLong) { try await connection.transmit(NFCFixture.echo(256).command) }
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
        var options = EmulatedPN532.Options()
        options.hasTypeB = false
        let fixture = try await NFCFixture(options)
        let connection = try await fixture.connect(PICC(application: PICC.echo))
        #expect(try await connection.transmit(NFCFixture.echo(5).command) == NFCFixture.echo(5).answer)
    }

    @Test("without a card the chip itself searches for both types without end")
    func idle() async throws {
        let fixture = try await NFCFixture()
        try await fixture.field.wait { fixture.board.search != nil }
        // InAutoPoll: without end, 150 ms for each type.
        #expect(fixture.board.search?.prefix(3) == [0x60, 0xFF, 0x01])
    }

    // MARK: Health

    /// The advice in the health check for a device that cannot be opened.
    private func advice(_ device: String) async throws -> String {
        let events = Events(DriverBackend.nfc(devices: [device]))
        while events.checks.isEmpty { _ = try await events.next() }
        let check = try #require(events.checks.first)
        #expect(!check.ok && check.name == "nfc \(device)")
        return check.advice?.description ?? ""
    }

    @Test("the advice distinguishes a silent board, a missing device and a wrong device")
    func lines() async throws {
        var options = EmulatedPN532.Options()
        options.isSilent = true
        let silent = try EmulatedPN532(options)
        #expect(try await advice(silent.connection).contains("no answer"))
        #expect(try await advice("pn532_uart:/nowhere/ttyUSB0").contains("there is no /nowhere/ttyUSB0"))
        #expect(try await advice("pn532_uart:/dev/null").contains("/dev/null is not a serial line"))
        #expect(try await advice("not a device").contains("not a connection string"))
    }
}
