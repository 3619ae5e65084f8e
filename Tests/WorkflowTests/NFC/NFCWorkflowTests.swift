// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EIDFeature
import NFCTestSupport
import Readers
import ReadersNFC
import ReadersVirtual
import Secrets
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

    @Test("wrong PINs lead to the CAN and then to the PUK, which unblocks the PIN")
    func ladder() async throws {
        let user = try await fixture.userWithCard()
        try await user.play(
            """
            \(Script.askedPINAtOnce)
            \(Script.wrongPIN(left: 2))
            > SET_PIN 000000
            < READER 1
            < ENTER_CAN 1
            > SET_CAN 111111
            < ENTER_CAN 1
            > SET_CAN 500540
            < ENTER_PIN 1
            > SET_PIN 000000
            < READER 0
            < ENTER_PUK 0
            > SET_PUK 0000000000
            < ENTER_PUK 0
            > SET_PUK 9876543210
            \(Script.asksPIN())
            \(Script.rightPIN)
            \(Script.changedInPlace)
            """
        )
        #expect(await fixture.hasPIN("654321"))
        #expect(await fixture.card.eidState?.pukCounter == 9)
    }

    @Test("a transport PIN, a deactivated PIN and a used-up PUK are reported as with every other reader")
    func otherCards() async throws {
        let transport = try await NFCFixture(.a, .card { $0.transportPIN = SecretBox(Secret("12345".utf8)) })
        var user = try await transport.userWithCard()
        try await user.play(
            """
            \(Script.askedPINAtOnce)
            > SET_PIN 12345
            < ENTER_NEW_PIN 3
            \(Script.changedInPlace)
            """
        )
        let deactivated = try await NFCFixture(.b, .card { $0.deactivated = true })
        user = try await deactivated.userWithCard()
        try await user.play(
            "> RUN_CHANGE_PIN\n< CHANGE_PIN\n< INSERT_CARD deactivated\n\(Script.cancelledInPlace)"
        )
        let usedUp = try await NFCFixture(.a, .card { ($0.retryCounter, $0.pukCounter) = (0, 0) })
        user = try await usedUp.userWithCard()
        try await user.play(
            """
            \(Script.begun)
            < ENTER_PUK 0
            > SET_PUK 9876543210
            < READER 0 inoperative
            < CHANGE_PIN false Establish_Pace_Channel_Puk_Inoperative
            """
        )
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

    @Test("ten losses of power during PACE lead to PAUSE, and CONTINUE resumes the dialogue")
    func badPosition() async throws {
        let user = try await fixture.userWithCard()
        try await user.play("> RUN_CHANGE_PIN\n< CHANGE_PIN")
        // A busy machine can make the driver take a lost card for a removed one.
        let removal = "<? READER -\n<? INSERT_CARD\n<? READER 3\n"
        for _ in 1...10 {
            try await user.play(removal + "< ENTER_PIN 3")
            // The second block is a command of PACE.
            fixture.field.plan(.powerLost, afterBlocks: 1)
            try await user.play("> SET_PIN 123456")
        }
        try await user.play(
            removal + "< PAUSE BadCardPosition\n> CONTINUE\n" + removal + """
                < ENTER_PIN 3
                \(Script.rightPIN)
                \(Script.changedInPlace)
                """
        )
        #expect(await fixture.card.eidState?.retryCounter == 3)
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
        let server = try await TestServer(readers: 0, backends: [NFCBackend(devices: boards.map(\.connection))])
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
