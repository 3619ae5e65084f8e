// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import TestSupport
import Testing
import Text
import VirtualEID

/// Tests CANCEL and disconnections at every point of the dialogue.
@Suite("Cancelling", .timeLimit(.minutes(5)))
@Loop struct CancelTests {
    private let recorder: RecordingReaders
    private let server: TestServer
    private let user: ScriptedClient

    init() async throws {
        recorder = try RecordingReaders()
        server = try await TestServer.started(recorder)
        user = try await ScriptedClient(server)
    }

    /// A question, with the dialogue that leads to it.
    enum Question: String, CaseIterable, Sendable {
        case insertCard, enterPIN, enterCAN, enterPINAfterCAN, enterPUK, enterNewPIN

        /// Whether a PACE channel is open while the question is asked.
        var hasChannel: Bool { self == .enterPINAfterCAN || self == .enterNewPIN }

        var dialogue: String {
            switch self {
            case .insertCard: Script.asked
            case .enterPIN: Script.asked + "\n> SET_CARD {}\n< READER 3\n< ENTER_PIN 3"
            case .enterCAN: Script.asked + "\n> SET_CARD {\"retryCounter\":1}\n< READER 1\n< ENTER_CAN 1"
            case .enterPINAfterCAN: Self.enterCAN.dialogue + "\n> SET_CAN 500540\n< ENTER_PIN 1"
            case .enterPUK: Script.asked + "\n> SET_CARD {\"retryCounter\":0}\n< READER 0\n< ENTER_PUK 0"
            case .enterNewPIN: Self.enterPIN.dialogue + "\n" + Script.rightPIN
            }
        }
    }

    /// The commands of PACE with the PIN, and the one that closes the channel.
    private static let wholePACE = [
        "22 plain", "86 plain chained", "86 plain chained", "86 plain chained", "86 plain", "22 plain",
    ]

    @Test("CANCEL at any question ends the workflow and the channel and frees the reader", arguments: Question.allCases)
    func cancel(question: Question) async throws {
        try await user.play(question.dialogue)
        let tries = await recorder.cardState(in: "Simulator")?.retryCounter
        recorder.forget()
        await user.client.send(#"{"cmd":"CANCEL"}"#)
        if question != .insertCard { try await user.play("< READER -") }
        try await user.play("< CHANGE_PIN false User_Cancelled")
        await user.isQuiet()
        #expect(await recorder.cardState(in: "Simulator")?.retryCounter == tries)
        // A command closes the channel; without a channel no command is sent.
        if question.hasChannel { #expect(recorder.recorded.map(\.command.short) == ["22 plain"]) }
        #expect(!recorder.recorded.contains { $0.command.ins != 0x22 })
        try await readerIsUsable()
    }

    @Test("a disconnection at any question closes the channel and frees the reader", arguments: Question.allCases)
    func clientGone(question: Question) async throws {
        let watcher = try await ScriptedClient(server)
        try await user.play(question.dialogue)
        if question != .insertCard {
            try await Self.seen(question, by: watcher)
        }
        recorder.forget()
        user.client.close()
        if question != .insertCard { try await watcher.play("<~ READER - busy\n<~ READER -") }
        if question.hasChannel { #expect(recorder.recorded.map(\.command.short) == ["22 plain"]) }
        #expect(!recorder.recorded.contains { $0.command.ins != 0x22 })
        try await readerIsUsable()
    }

    /// Expects the READER messages to other clients until the question.
    private static func seen(_ question: Question, by watcher: ScriptedClient) async throws {
        switch question {
        case .insertCard: return
        case .enterPIN, .enterNewPIN: try await watcher.play("< READER 3\n< READER 3 busy")
        case .enterCAN, .enterPINAfterCAN: try await watcher.play("< READER 1\n< READER 1 busy")
        case .enterPUK: try await watcher.play("< READER 0\n< READER 0 busy")
        }
    }

    private func readerIsUsable() async throws {
        let next = try await ScriptedClient(server)
        try await next.play(
            """
            \(Script.asked)
            > SET_CARD {}
            \(Script.asksPIN())
            \(Script.rightPIN)
            \(Script.changed)
            """
        )
        await next.isQuiet()
    }

    // MARK: During card commands

    /// Sends a line, and CANCEL while its command to the card is held.
    private func cancel(during line: String, at gate: RecordingReaders.Gate) async throws {
        try await user.play(line)
        await gate.arrival()
        await user.client.send(#"{"cmd":"CANCEL"}"#)
        await user.isQuiet()
        gate.open()
    }

    @Test("PACE with the PIN runs to its end before CANCEL takes effect", arguments: 0..<5)
    func cancelDuringPACE(step: Int) async throws {
        try await user.play(Question.enterPIN.dialogue)
        recorder.forget()
        let gate = recorder.gate { _, _ in recorder.recorded.count == step }
        try await cancel(during: "> SET_PIN 123456", at: gate)
        try await user.play(
            """
            < READER -
            < CHANGE_PIN false User_Cancelled
            """
        )
        #expect(recorder.recorded.map(\.command.short) == Self.wholePACE)
        let card = try #require(await recorder.cardState(in: "Simulator"))
        #expect(card.judgedPINs == 1)
        #expect(card.retryCounter == 3)
        try await readerIsUsable()
    }

    @Test("PACE with the PIN runs to its end when the client disconnects", arguments: 0..<5)
    func goneDuringPACE(step: Int) async throws {
        let watcher = try await ScriptedClient(server)
        try await user.play(Question.enterPIN.dialogue)
        try await Self.seen(.enterPIN, by: watcher)
        recorder.forget()
        let gate = recorder.gate { _, _ in recorder.recorded.count == step }
        await user.client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
        await gate.arrival()
        user.client.close()
        await watcher.isQuiet()
        gate.open()
        try await watcher.play("<~ READER - busy\n<~ READER -")
        #expect(recorder.recorded.map(\.command.short) == Self.wholePACE)
        #expect(await recorder.cardState(in: "Simulator")?.retryCounter == 3)
        try await readerIsUsable()
    }

    @Test("CANCEL during PACE with a wrong PIN costs one try, and no further question comes")
    func cancelWrongPIN() async throws {
        try await user.play(Question.enterPIN.dialogue)
        let gate = recorder.gate { $1.isToken }
        try await cancel(during: "> SET_PIN 000000", at: gate)
        try await user.play(
            """
            < READER 2
            < READER -
            < CHANGE_PIN false User_Cancelled
            """
        )
        await user.isQuiet()
        #expect(await recorder.cardState(in: "Simulator")?.retryCounter == 2)
    }

    @Test("CANCEL after the command for the new PIN has no effect; the answer of the card decides")
    func cancelDuringChange() async throws {
        try await user.play(Question.enterNewPIN.dialogue)
        let gate = recorder.gate { $1.ins == 0x2C }
        try await cancel(during: "> SET_NEW_PIN 654321", at: gate)
        try await user.play(
            """
            < READER -
            < CHANGE_PIN true
            """
        )
        #expect(await recorder.cardHasPIN(Secret("654321".utf8), in: "Simulator"))
    }

    @Test("CANCEL during identification ends the workflow at once and takes the card out")
    func cancelDuringIdentification() async throws {
        try await user.play(Question.insertCard.dialogue)
        let gate = recorder.gate()
        await user.client.send(#"{"cmd":"SET_CARD","name":"Simulator"}"#)
        await gate.arrival()
        try await user.play(Script.cancelledInPlace)
        gate.open()
        await user.isQuiet()
        try await readerIsUsable()
    }

    @Test("CANCEL while the card is being opened ends the workflow without a question")
    func cancelDuringOpening() async throws {
        #expect(try await recorder.insert(VirtualEIDDescription.card(), into: "Simulator"))
        try await user.play("< READER 3")
        let gate = recorder.gate()
        try await user.play(
            """
            \(Script.begun)
            """
        )
        await gate.arrival()
        await user.client.send(#"{"cmd":"CANCEL"}"#)
        // The server has read CANCEL when the following command is answered.
        await user.isQuiet()
        gate.open()
        try await user.play(
            """
            < READER -
            < CHANGE_PIN false User_Cancelled
            """
        )
        await user.isQuiet()
        try await readerIsUsable()
    }
}
