// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import Foundation
import Glibc
import Host
import ISO7816
import NFCTestSupport
import Readers
import TestSupport
import Testing

@testable import ReadersNFC

@Suite("The program badged-nfc", .timeLimit(.minutes(5)))
struct NFCProgramTests {
    @Test("a crash removes the reader and fails its command, and the program is started again")
    func crash() async throws {
        let fixture = try await NFCFixture()
        let connection = try await fixture.connect(PICC(application: PICC.echo))
        let crashed = try #require(await fixture.backend.client.process)
        // A stopped program does not answer the command.
        kill(crashed, SIGSTOP)
        async let answer = connection.transmit(NFCFixture.echo(1).command)
        kill(crashed, SIGKILL)
        do {
            _ = try await answer
            Issue.record("the command was answered")
        } catch {
            #expect(error as? CardError == .removed)
        }
        var events: [String] = []
        while events.count < 3 {
            let event = try await fixture.events.next()
            // The first look can end after the insertion.
            if event != "health ok" { events.append(event) }
        }
        #expect(events == ["withdrawn \(fixture.reader)", "removed \(fixture.reader)", "health nfc"])
        #expect(fixture.events.checks.first?.advice?.contains("ended unexpectedly") == true)

        let insertion = try await fixture.events.insertion(in: fixture.reader)
        let again = try await fixture.backend.connect(insertion)
        #expect(try await again.transmit(NFCFixture.echo(300).command) == NFCFixture.echo(300).answer)
        #expect(await fixture.backend.client.process != crashed)
        await again.disconnect(reset: true)
        await #expect(throws: CardError.removed) { try await connection.transmit(NFCFixture.echo(1).command) }
        await connection.disconnect(reset: true)
    }

    @Test("a program that is stopped is ended and started again while a client watches readers, or asks for the health")
    func hang() async throws {
        let fixture = try await NFCFixture(heartbeat: Heartbeat.Times())
        let first = try #require(await fixture.backend.client.process)
        kill(first, SIGSTOP)
        fixture.backend.watch(true)
        try await fixture.events.wait(for: "removed \(fixture.reader)")
        try await fixture.events.wait(for: "health nfc")
        #expect(fixture.events.checks.first?.advice?.contains("did not answer; it is started again in") == true)
        try await fixture.events.wait(for: "added \(fixture.reader)")
        fixture.backend.watch(false)
        let second = try #require(await fixture.backend.client.process)
        #expect(second != first)
        kill(second, SIGSTOP)
        // On a busy machine some of its threads run for a moment more.
        while await fixture.backend.client.process == second {
            try Task.checkCancellation()
            _ = await fixture.backend.currentHealth()
        }
        try await fixture.events.wait(for: "health nfc")
        #expect(fixture.events.checks.first?.advice?.contains("did not answer; it is started again in") == true)
        try await fixture.events.wait(for: "added \(fixture.reader)")
    }

    @Test("a board that falls silent while it waits for cards is reported and removed, and used when it answers again")
    func silentBoard() async throws {
        let fixture = try await NFCFixture(heartbeat: Heartbeat.Times())
        fixture.backend.watch(true)
        fixture.board.stopAnswering()
        try await fixture.events.wait(for: "removed \(fixture.reader)")
        // A board that has not even acknowledged its last command makes libnfc hang, and badged-nfc is started again.
        while !fixture.events.checks.contains(where: { !$0.ok && $0.name == "nfc \(fixture.board.connection)" }) {
            _ = try await fixture.events.next()
        }
        fixture.board.startAnswering()
        try await fixture.events.wait(for: "added \(fixture.reader)")
        let connection = try await fixture.connect(PICC(application: PICC.echo))
        #expect(try await connection.transmit(NFCFixture.echo(5).command) == NFCFixture.echo(5).answer)
        await connection.disconnect(reset: true)
    }

    @Test("a card is found as before while the board is asked again and again whether it answers")
    func asked() async throws {
        let fixture = try await NFCFixture()
        let process = await fixture.backend.client.process
        for _ in 0..<3 {
            #expect(await fixture.backend.currentHealth().isEmpty)
            let connection = try await fixture.connect(PICC(application: PICC.echo))
            #expect(await fixture.backend.currentHealth().isEmpty)
            #expect(try await connection.transmit(NFCFixture.echo(5).command) == NFCFixture.echo(5).answer)
            await connection.disconnect(reset: true)
            fixture.field.remove()
            try await fixture.events.wait(for: "withdrawn \(fixture.reader)")
        }
        #expect(await fixture.backend.client.process == process)
    }

    @Test("a rescan starts a crashed program at once")
    func rescan() async throws {
        let fixture = try await NFCFixture()
        for _ in 0..<3 {
            kill(try #require(await fixture.backend.client.process), SIGKILL)
            try await fixture.events.wait(for: "removed \(fixture.reader)")
            fixture.backend.rescan()
            try await fixture.events.wait(for: "added \(fixture.reader)")
        }
    }

    @Test(
        "signals that end badged do not end the program before its devices are closed",
        arguments: [SIGTERM, SIGINT, SIGHUP]
    )
    func signals(number: Int32) async throws {
        let fixture = try await NFCFixture()
        let process = try #require(await fixture.backend.client.process)
        kill(process, number)
        let connection = try await fixture.connect(PICC(application: PICC.echo))
        #expect(try await connection.transmit(NFCFixture.echo(5).command) == NFCFixture.echo(5).answer)
        #expect(await fixture.backend.client.process == process)
    }

    @Test("after the closing of the backend the program is not started again")
    func closed() async throws {
        let fixture = try await NFCFixture()
        await fixture.backend.close()
        // `close` waits 0.7 s for the program, which may need longer on a busy machine.
        try await until { await fixture.backend.client.process == nil }
        fixture.backend.rescan()
        _ = await fixture.backend.currentHealth()
        #expect(await fixture.backend.client.process == nil)
    }

    @Test("a second stream of events ends the first, and the devices are opened again")
    func secondStream() async throws {
        let board = try EmulatedPN532()
        let backend = DriverBackend.nfc(devices: [board.connection], heartbeat: .patient)
        let first = Events(backend)
        try await first.wait(for: "added pn532_uart:\(board.path)")
        let second = Events(backend)
        while (try? await first.next()) != nil {}
        try await second.wait(for: "added pn532_uart:\(board.path)")
    }

    @Test(
        "libnfc's configuration is searched for devices",
        arguments: [
            ("libnfc.conf", "#device.connstring = \"a\"\n# allow_intrusive_scan = true\nlog_level = 1\n", false),
            ("libnfc.conf", "log_level = 1\n  device.connstring = \"pn532_uart:/dev/ttyUSB0\"\n", true),
            ("libnfc.conf", "allow_intrusive_scan = true", true), ("devices.d/pn532.conf", "device.name = \"a\"", true),
            ("devices.d/pn532.conf.old", "device.name = \"a\"", false),
        ]
    )
    func sources(file: String, text: String, namesDevice: Bool) throws {
        let folder = try TemporaryFolder()
        mkdir(folder.path + "/devices.d", 0o755)
        #expect(!DeviceSources.libnfcNamesDevice(folder: folder.path))
        try folder.write(file, text.utf8)
        #expect(DeviceSources.libnfcNamesDevice(folder: folder.path) == namesDevice)
    }
}
