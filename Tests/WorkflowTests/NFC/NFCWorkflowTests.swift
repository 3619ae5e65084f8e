// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import EIDFeature
import NFCTestSupport
import Readers
import ReadersNFC
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

/// Tests the dialogues of RUN_CHANGE_PIN on an NFC reader. The messages are the same as with every other reader.
@Suite("RUN_CHANGE_PIN over NFC", .timeLimit(.minutes(5)))
@Loop struct NFCWorkflowTests {
    private let fixture: NFCFixture

    init() async throws { fixture = try await NFCFixture() }

    @Test("the PIN is changed, with cards of both types", arguments: [PICC.Technology.a, .b])
    func happy(technology: PICC.Technology) async throws {
        let fixture = try await NFCFixture(technology)
        let user = try await ScriptedClient(fixture.server, reader: fixture.reader)
        try await user.play(Script.asked)
        fixture.insert()
        try await user.play(
            """
            \(Script.asksPIN())
            \(Script.rightPIN)
            \(Script.changedInPlace)
            """
        )
        #expect(await fixture.hasPIN("654321"))
        fixture.field.remove()
        try await user.play("< READER -")
        await user.isQuiet()
    }

    @Test("a waiting workflow reports the failure of its reader, and continues when the reader is back")
    func failedReader() async throws {
        let client = try fixture.server.connect()
        await client.send(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(fixture.reader)"}"#)
        #expect(await client.next("INSERT_CARD")?["error"] == nil)
        try await fixture.field.wait { fixture.board.search != nil }
        fixture.board.disturbLine()
        let told = try #require(await client.next("INSERT_CARD"))
        #expect(told["error"]?.string?.contains("the device stopped answering and is tried again") == true)
        #expect(told["reader"]?.string == fixture.reader)
        fixture.insert()
        #expect(await client.next("ENTER_PIN") != nil)
    }

    private var record: String { #"{"cmd":"RECORD_CARD","name":"\#(fixture.reader)","board":true}"# }

    @Test("a board is recorded while a workflow waits for its card, and the workflow goes on afterwards")
    func recorded() async throws {
        let client = try fixture.server.connect()
        await client.send(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(fixture.reader)"}"#)
        #expect(await client.next("INSERT_CARD")?["error"] == nil)
        let other = try fixture.server.connect()
        let answer = try #require(await other.ask(record, "CARD_RECORDING"))
        let recording = try BoardRecording(try #require(answer["recording"]?.string).utf8)
        #expect(recording.driver == "pn532_uart" && recording.answerToReset == nil && answer["fault"] == nil)
        fixture.insert()
        #expect(await client.next("ENTER_PIN") != nil)
    }

    @Test("a board is not recorded while a workflow has its card, and the card keeps its channel")
    func inUse() async throws {
        let user = try await fixture.userWithCard()
        try await user.play("> RUN_CHANGE_PIN\n< CHANGE_PIN\n< ENTER_PIN 3\n> SET_PIN 123456\n< ENTER_NEW_PIN 3")
        let other = try fixture.server.connect()
        let answer = try #require(await other.ask(record, "CARD_RECORDING"))
        #expect(answer["recording"] == nil && answer["error"]?.string?.contains("busy") == true, "\(answer)")
        try await user.play(Script.changedInPlace)
        #expect(await fixture.hasPIN("654321"))
    }

    @Test("CANCEL and a disconnected client leave the card without a channel and the reader free")
    func cancelled() async throws {
        let gone = try await fixture.userWithCard()
        try await gone.play(
            "> RUN_CHANGE_PIN\n< CHANGE_PIN\n< ENTER_PIN 3\n> SET_PIN 123456\n< ENTER_NEW_PIN 3"
        )
        gone.client.close()
        await fixture.server.clients(0)
        let user = try await ScriptedClient(fixture.server, reader: fixture.reader)
        try await user.play(
            """
            \(Script.askedPINAtOnce)
            \(Script.cancelledInPlace)
            \(Script.askedPINAtOnce)
            \(Script.rightPIN)
            \(Script.changedInPlace)
            """
        )
    }

    @Test("the removal of the card during ENTER_PIN ends the question")
    func takenAway() async throws {
        let user = try await fixture.userWithCard()
        try await user.play("> RUN_CHANGE_PIN\n< CHANGE_PIN\n< ENTER_PIN 3")
        fixture.field.remove()
        try await user.play("< READER -\n< INSERT_CARD")
        fixture.insert()
        try await user.play("< READER 3\n< ENTER_PIN 3\n\(Script.cancelledInPlace)")
        #expect(await fixture.card.eidState?.judgedPINs == 0)
    }

    @Test("an unknown card is reported, and the next eID card is used")
    func unknownCard() async throws {
        let user = try await ScriptedClient(fixture.server, reader: fixture.reader)
        try await user.play(Script.asked)
        var storage = PICC(application: PICC.echo)
        storage.selectAnswer = 0x08
        fixture.field.insert(storage)
        try await user.play("< READER ?\n< INSERT_CARD noEIDCard")
        fixture.field.remove()
        try await user.play("< READER -")
        fixture.insert()
        try await user.play("< READER 3\n< ENTER_PIN 3\n\(Script.cancelledInPlace)")
    }

    @Test("several NFC readers work at the same time")
    func several() async throws {
        let boards = try (0..<3).map { _ in try EmulatedPN532() }
        let cards = try boards.map { _ in try VirtualCard() }
        let server = try await TestServer(
            readers: 0,
            backends: [DriverBackend.nfc(devices: boards.map(\.connection), heartbeat: .patient)]
        )
        await server.ready(boards.map { "pn532_uart:\($0.path)" })
        for (board, card) in zip(boards, cards) { board.field.insert(.virtual(card)) }
        var users: [ScriptedClient] = []
        for board in boards {
            let user = try await ScriptedClient(server, reader: "pn532_uart:\(board.path)")
            // READER for the card can come before or after CHANGE_PIN.
            try await user.play("> RUN_CHANGE_PIN\n<? READER 3\n< CHANGE_PIN")
            try await user.play("<? INSERT_CARD\n<? READER 3\n<~ ENTER_PIN 3")
            users.append(user)
        }
        for user in users { await user.client.send(#"{"cmd":"SET_PIN","value":"123456"}"#) }
        for user in users { try await user.play("< ENTER_NEW_PIN 3\n> SET_NEW_PIN 654321") }
        for user in users { try await user.play("< CHANGE_PIN true") }
        for card in cards { #expect(await card.hasPIN(Secret("654321".utf8))) }
    }
}
