// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import NFCTestSupport
import Readers
import ReadersVirtual
import Server
import TestSupport
import Testing
import Text
import VirtualEID

/// Tests the daemon as a process, with boards from `[nfc] devices`.
@Suite("The daemon with NFC", .timeLimit(.minutes(5)))
struct NFCDaemonTests {
    @Loop private static func change(_ client: TestClient, reader: String) async -> Bool? {
        await client.send(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(reader)"}"#)
        while let message = await client.next() {
            switch message["msg"]?.string {
            case "ENTER_PIN": await client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
            case "ENTER_NEW_PIN": await client.send(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#)
            case "CHANGE_PIN": if let success = message["success"]?.bool { return success }
            default: break
            }
        }
        return nil
    }

    @Test("the PIN is changed, SIGHUP finds an unplugged board again, and SIGTERM switches the field off")
    @Loop func lifecycle() async throws {
        let board = try EmulatedPN532()
        let reader = "pn532_uart:\(board.path)"
        let daemon = try await DaemonProcess(configuration: "[nfc]\ndevices = \(board.connection)\n", usesNFC: true)
        let client = try daemon.connect()
        let info = try #require(await client.ask(#"{"cmd":"GET_INFO"}"#, "INFO"))
        #expect("\(info)".contains("nfc"))
        let card = try VirtualCard()
        board.field.insert(.virtual(card))
        await client.waitForCard(in: reader)
        #expect(await Self.change(client, reader: reader) == true)
        #expect(await card.hasPIN(Secret("654321".utf8)))

        board.unplug()
        while let message = await client.next("READER"), message["attached"]?.bool != false {}
        var health = try #require(await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH"))
        while !"\(health)".contains("plug the board in") {
            health = try #require(await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH"))
        }
        try board.plug()
        daemon.signal(SIGHUP)
        await client.waitForCard(in: reader)
        #expect(board.field.isOn)
        daemon.signal(SIGTERM)
        #expect(await daemon.exitCode() == 0)
        // badged waits 0.7 s for badged-nfc, which may need longer on a busy machine.
        let field = board.field
        try await field.wait { !field.isOn }
    }

    @Test("SIGHUP applies changed [nfc] devices")
    @Loop func renamed() async throws {
        let boards = [try EmulatedPN532(), try EmulatedPN532()]
        let daemon = try await DaemonProcess(configuration: "[nfc]\ndevices =\n", usesNFC: true)
        let client = try daemon.connect()
        // The boards come and go in any order.
        var isAttached = [false, false]
        func until(_ wanted: [Bool]) async {
            while isAttached != wanted, let message = await client.next("READER") {
                let name = message["name"]?.string
                guard let index = boards.firstIndex(where: { "pn532_uart:\($0.path)" == name }) else { continue }
                isAttached[index] = message["attached"]?.bool == true
            }
            #expect(isAttached == wanted)
        }
        func name(_ boards: [EmulatedPN532]) throws {
            let names = boards.map(\.connection).joined(separator: ", ")
            try daemon.configure("[nfc]\ndevices = \(names)\n")
            daemon.signal(SIGHUP)
        }
        try name(boards)
        await until([true, true])
        try name([boards[1]])
        await until([false, true])
        try name([boards[0]])
        await until([true, false])
        daemon.signal(SIGTERM)
        #expect(await daemon.exitCode() == 0)
    }

    @Test("badged-nfc runs only while a device is configured or connected")
    @Loop func program() async throws {
        let board = try EmulatedPN532()
        let daemon = try await DaemonProcess(configuration: "[nfc]\ndevices =\n", usesNFC: true)
        let client = try daemon.connect()
        _ = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
        #expect(daemon.children.isEmpty)
        try daemon.configure("[nfc]\ndevices = \(board.connection)\n")
        daemon.signal(SIGHUP)
        while let message = await client.next("READER"), message["attached"]?.bool != true {}
        #expect(daemon.children.count == 1)
        try daemon.configure("[nfc]\ndevices =\n")
        daemon.signal(SIGHUP)
        while let message = await client.next("READER"), message["attached"]?.bool != false {}
        // The program reports the removal before it ends.
        while !daemon.children.isEmpty, !Task.isCancelled { _ = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH") }
        let field = board.field
        try await field.wait { !field.isOn }
    }

    @Test("after a crash of badged-nfc a dialogue asks for the card and goes on with the restarted program")
    @Loop func crash() async throws {
        let board = try EmulatedPN532()
        let reader = "pn532_uart:\(board.path)"
        let daemon = try await DaemonProcess(configuration: "[nfc]\ndevices = \(board.connection)\n", usesNFC: true)
        let client = try daemon.connect()
        board.field.insert(.virtual(try VirtualCard()))
        await client.waitForCard(in: reader)
        await client.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        _ = try #require(await client.next("ENTER_PIN"), "\(daemon.log)")
        for child in daemon.children { kill(child, SIGKILL) }
        _ = try #require(await client.next("INSERT_CARD"), "\(daemon.log)")
        await daemon.wait { $0.log.contains { $0.contains("badged-nfc ended unexpectedly") } }
        _ = try #require(await client.next("ENTER_PIN"), "\(daemon.log)")
    }

    @Test("the end of badged by SIGKILL switches the field off")
    @Loop func killed() async throws {
        let board = try EmulatedPN532()
        let daemon = try await DaemonProcess(configuration: "[nfc]\ndevices = \(board.connection)\n", usesNFC: true)
        let client = try daemon.connect()
        while let message = await client.next("READER"), message["attached"]?.bool != true {}
        daemon.signal(SIGKILL)
        let field = board.field
        try await field.wait { !field.isOn }
    }
}
