// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import TestSupport
import Testing
import VirtualEID

/// Tests cards that cannot be used, are lost or are replaced by others.
@Suite("Cards", .timeLimit(.minutes(5)))
@Loop struct CardTests {
    private let user: ScriptedClient
    private var server: TestServer { user.server }

    init() async throws { user = try await ScriptedClient(.started()) }

    @Test(
        "a card that cannot be used is reported, and the workflow continues with another card",
        arguments: [
            (#"SET_CARD {"deactivated":true}"#, "0 deactivated", "deactivated"), (noEIDCard, "?", "noEIDCard"),
        ]
    )
    func unusable(command: String, card: String, obstacle: String) async throws {
        try await user.play(
            """
            \(Script.asked)
            > \(command)
            < READER \(card)
            < INSERT_CARD \(obstacle)
            """
        )
        await user.isQuiet()
        await server.withdraw()
        try await user.play(
            """
            < READER -
            > SET_CARD {}
            \(Script.asksPIN())
            \(Script.cancelled)
            """
        )
    }

    /// SET_CARD with a card whose EF.DIR lists no application.
    private nonisolated static let noEIDCard = """
        {"cmd":"SET_CARD","name":"Simulator","simulator":{"files":[{"fileId":"2F00","shortFileId":"1E","content":"6100"}]}}
        """

    @Test("a cause is reported once for each card")
    func reportedOnce() async throws {
        let server = try await TestServer.started(readers: ["Simulator", "Simulator 2"])
        let user = try await ScriptedClient(server)
        try await user.play(
            """
            > RUN_CHANGE_PIN any
            < CHANGE_PIN
            < INSERT_CARD
            > SET_CARD {"deactivated":true}
            < READER 0 deactivated
            < INSERT_CARD deactivated
            """
        )
        // A card in another reader is reported without repeating the first report.
        try await server.insert(.card { $0.deactivated = true }, into: "Simulator 2")
        try await user.play("< INSERT_CARD deactivated at Simulator 2")
        await server.withdraw()
        try await user.play(
            """
            < READER -
            > SET_CARD {"deactivated":true}
            < READER 0 deactivated
            < INSERT_CARD deactivated
            """
        )
        await user.isQuiet()
    }

    @Test("a card that is lost during identification is requested again", arguments: 0..<7)
    func lostWhileIdentified(index: Int) async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"faults":[{"afterApdu":\(index),"do":"remove"}]}
            < INSERT_CARD
            > SET_CARD
            \(Script.asksPIN())
            \(Script.cancelled)
            """
        )
    }

    @Test("a card that is lost while it is being opened is requested again", arguments: 7..<10)
    func lostWhileOpened(index: Int) async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"faults":[{"afterApdu":\(index),"do":"remove"}]}
            < READER 3
            <~ READER -
            <~ INSERT_CARD
            > SET_CARD
            \(Script.asksPIN())
            \(Script.cancelled)
            """
        )
    }

    // MARK: Replaced cards

    @Test("removing and inserting a card during ENTER_PIN repeats the question")
    func reinserted() async throws {
        try await user.play(Script.askedPIN)
        await server.withdraw()
        try await user.play(
            """
            < READER -
            < INSERT_CARD
            > SET_PIN 123456
            < BAD_STATE SET_PIN
            > SET_CARD
            \(Script.asksPIN())
            \(Script.rightPIN)
            """
        )
        await server.withdraw()
        try await user.play(
            """
            < READER -
            < INSERT_CARD
            > SET_NEW_PIN 654321
            < BAD_STATE SET_NEW_PIN
            > SET_CARD
            \(Script.asksPIN())
            \(Script.rightPIN)
            \(Script.changed)
            """
        )
        #expect(await server.cardState()?.judgedPINs == 2)
        #expect(await server.hasPIN("654321"))
    }

    @Test("another card that is inserted during ENTER_PIN gets its own question")
    func swappedWhileAsked() async throws {
        let recorder = try RecordingReaders()
        let user = try await ScriptedClient(.started(recorder))
        try await user.play(Script.askedPIN)
        await recorder.removeCard(from: "Simulator")
        try await user.play(
            """
            < READER -
            < INSERT_CARD
            > SET_CARD {"pin":"777777","retryCounter":2}
            \(Script.asksPIN(2))
            """
        )
        #expect(await recorder.cardState(in: "Simulator")?.judgedPINs == 0)
        try await user.play(
            """
            > SET_PIN 777777
            < READER 3
            < ENTER_NEW_PIN 3
            \(Script.changed)
            """
        )
        #expect(await recorder.cardState(in: "Simulator")?.judgedPINs == 1)
    }

    /// `step` is the number of commands after SET_PIN at which the card is replaced.
    @Test("a PIN for one card is never sent to the card that replaces it", arguments: 0..<5)
    func swappedDuringPACE(step: Int) async throws {
        let recorder = try RecordingReaders()
        let user = try await ScriptedClient(.started(recorder))
        try await user.play(Script.askedPIN)
        recorder.forget()
        let gate = recorder.gate { _, _ in recorder.recorded.count == step }
        await user.client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
        await gate.arrival()
        await recorder.removeCard(from: "Simulator")
        // The other card has the same PIN, so a dialogue that continued would succeed.
        #expect(try await recorder.insert(VirtualEIDDescription.card(), into: "Simulator"))
        gate.open()
        try await user.play(
            """
            < READER -
            <? INSERT_CARD
            <~ READER 3
            < ENTER_PIN 3
            """
        )
        let second = try #require(await recorder.cardState(in: "Simulator"))
        #expect(second.judgedPINs == 0)
        #expect(second.retryCounter == 3)
        // The second card has received the commands for identification and opening only.
        // The command that found no card may be recorded after the first commands of the second card.
        let seen = recorder.recorded.filter { $0.response != nil }.suffix(second.apdus).map(\.command)
        #expect(seen.count == second.apdus)
        #expect(!seen.contains { $0.ins == 0x86 || $0.ins == 0x2C })
        try await user.play(
            """
            \(Script.rightPIN)
            \(Script.cancelled)
            """
        )
    }

    @Test("a new PIN for one card is never sent to the card that replaces it")
    func swappedDuringChange() async throws {
        let recorder = try RecordingReaders()
        let user = try await ScriptedClient(.started(recorder))
        try await user.play(
            """
            \(Script.askedPIN)
            \(Script.rightPIN)
            """
        )
        let gate = recorder.gate { $1.ins == 0x2C }
        await user.client.send(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#)
        await gate.arrival()
        await recorder.removeCard(from: "Simulator")
        #expect(try await recorder.insert(VirtualEIDDescription.card(), into: "Simulator"))
        try await user.play(
            """
            < READER -
            < READER 3
            """
        )
        gate.open()
        // The first card may or may not have the new PIN, so the workflow reports the missing answer.
        try await user.play(
            """
            <~ READER -
            <~ CHANGE_PIN false Change_Pin_No_SetEidPinCommand_Response
            """
        )
        let second = try #require(await recorder.cardState(in: "Simulator"))
        #expect(second.judgedPINs == 0)
        try await user.play(
            """
            \(Script.askedPIN)
            \(Script.rightPIN)
            \(Script.cancelled)
            """
        )
    }

    @Test("CAN and PUK for one card are never sent to the card that replaces it", arguments: [1, 0])
    func swappedUnlocking(tries: Int) async throws {
        let recorder = try RecordingReaders()
        let user = try await ScriptedClient(.started(recorder))
        let question = tries == 1 ? "CAN" : "PUK"
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"retryCounter":\(tries)}
            < READER \(tries)
            < ENTER_\(question) \(tries)
            """
        )
        let gate = recorder.gate { $1.ins == 0x86 }
        let value = tries == 1 ? "500540" : "9876543210"
        await user.client.send(#"{"cmd":"SET_\#(question)","value":"\#(value)"}"#)
        await gate.arrival()
        await recorder.removeCard(from: "Simulator")
        #expect(try await recorder.insert(VirtualEIDDescription.card { $0.retryCounter = tries }, into: "Simulator"))
        recorder.forget()
        gate.open()
        try await user.play(
            """
            < READER -
            <? INSERT_CARD
            <~ READER \(tries)
            < ENTER_\(question) \(tries)
            """
        )
        #expect(!recorder.recorded.contains { $0.response != nil && $0.command.ins == 0x86 })
        #expect(await recorder.cardState(in: "Simulator")?.pukCounter == 10)
    }

    // MARK: A new PIN that the card refuses

    @Test(
        "a card that refuses the new PIN makes the workflow fail with a reason, and keeps its PIN",
        arguments: ["6982", "6985", "6A80", "6700", "6F00"]
    )
    func newPINRefused(status: String) async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"faults":[{"afterApdu":15,"do":"sw:\(status)"}]}
            \(Script.asksPIN())
            \(Script.rightPIN)
            > SET_NEW_PIN 654321
            < READER -
            < CHANGE_PIN false Change_Pin_Unrecoverable
            """
        )
        #expect(await server.cardState()?.faultsLeft == 0)
        #expect(await server.hasPIN("123456"))
    }
}
