// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import VirtualEID

/// Tests readers with a keypad, where no secret is sent over the socket.
@Suite("Keypad readers", .timeLimit(.minutes(5)))
@Loop struct KeypadTests {
    private let user: ScriptedClient
    private var server: TestServer { user.server }

    init() async throws { user = try await ScriptedClient(.started()) }

    @Test("with a keypad reader questions are answered without a value")
    func change() async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"keypad":true,"transportPin":"98765"}
            < READER -
            \(Script.asksPIN())
            > SET_PIN 98765
            < ENTER_PIN 3: Value cannot be defined
            > SET_PIN
            < ENTER_NEW_PIN 3
            > SET_NEW_PIN
            < READER -
            < CHANGE_PIN true
            """
        )
        #expect(await server.hasPIN("123456"))
        #expect(await server.cardState()?.isTransport == false)
    }

    @Test("a suspended card takes CAN and PIN from the keypad")
    func suspended() async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"keypad":true,"retryCounter":1}
            < READER -
            < READER 1
            < ENTER_CAN 1
            > SET_CAN
            < ENTER_PIN 1
            > SET_PIN
            < READER 3
            < ENTER_NEW_PIN 3
            > SET_NEW_PIN
            < READER -
            < CHANGE_PIN true
            """
        )
        #expect(await server.cardState()?.retryCounter == 3)
    }

    @Test("a blocked card takes the PUK from the keypad and is unblocked")
    func blocked() async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"keypad":true,"retryCounter":0}
            < READER -
            < READER 0
            < ENTER_PUK 0
            > SET_PUK
            \(Script.asksPIN())
            > SET_PIN
            < ENTER_NEW_PIN 3
            > SET_NEW_PIN
            < READER -
            < CHANGE_PIN true
            """
        )
        #expect(await server.cardState()?.pukCounter == 9)
    }

    /// A result of the keypad, and the next message to the client.
    struct Answer: Sendable, CustomTestStringConvertible {
        let outcome: KeypadPACEResult.Outcome
        let next: String

        var testDescription: String { "\(outcome)" }
    }

    @Test(
        "the result of the keypad is reported",
        arguments: [
            Answer(outcome: .cancelled, next: "CHANGE_PIN false Establish_Pace_Channel_User_Cancelled"),
            Answer(outcome: .timeout, next: "CHANGE_PIN false Maintain_Card_Connection_Pace_Unrecoverable"),
            Answer(outcome: .failed(0xD000_0001), next: "CHANGE_PIN false Maintain_Card_Connection_Pace_Unrecoverable"),
            Answer(outcome: .wrongPassword, next: "ENTER_PIN 3"),
            // The reader has lost the card, but the backend still reports it, so the card is opened again.
            Answer(outcome: .noCard, next: "ENTER_PIN 3"),
        ]
    )
    func outcomes(answer: Answer) async throws {
        let user = try await Self.user { _ throws(CardError) in KeypadPACEResult(outcome: answer.outcome) }
        try await user.play(
            """
            \(Script.askedPINAtOnce)
            > SET_PIN
            < \(answer.next)
            """
        )
        await user.isQuiet()
    }

    @Test(
        "the status of the keypad for the new PIN determines the reason of the failure",
        arguments: [
            (0x6400, "Change_Pin_Input_Timeout"), (0x6401, "Change_Pin_User_Cancelled"),
            (0x6402, "Change_Pin_New_Pin_Mismatch"), (0x6403, "Change_Pin_New_Pin_Invalid_Length"),
            (0x6982, "Change_Pin_Unexpected_Transmit_Status"), (0x6A80, "Change_Pin_Unexpected_Transmit_Status"),
        ]
    )
    func newPIN(status: UInt16, reason: String) async throws {
        let user = try await Self.user { _ throws(CardError) in
            KeypadPACEResult(outcome: .established)
        } modify: {
            () throws(CardError) in
            StatusWord(status)
        }
        try await user.play(
            """
            \(Script.askedPINAtOnce)
            > SET_PIN
            < ENTER_NEW_PIN 3
            > SET_NEW_PIN
            < CHANGE_PIN false \(reason)
            """
        )
    }

    /// Returns a client and a card in a reader with a scripted keypad.
    private static func user(
        establish: @escaping ScriptedKeypad.Establish,
        modify: @escaping ScriptedKeypad.Modify = { () throws(CardError) in .ok }
    ) async throws -> ScriptedClient {
        let card = try VirtualCard()
        let backend = ScriptedReaders { _ throws(CardError) in
            ScriptedKeypad(ScriptedConnection(to: card), establish: establish, modify: modify)
        }
        backend.add(ReaderDescription(name: "Keypad", hasKeypad: true))
        let server = try await TestServer.started(backend, readers: ["Keypad"])
        let user = try await ScriptedClient(server, reader: "Keypad")
        backend.insert(into: "Keypad")
        try await user.play("< READER 3")
        return user
    }
}
