// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Server
import TestSupport
import Testing
import VirtualEID

/// Tests which password is requested for which state of the card.
@Suite("PIN, CAN and PUK", .timeLimit(.minutes(5)))
@Loop struct LadderTests {
    private let user: ScriptedClient
    private var server: TestServer { user.server }

    init() async throws { user = try await ScriptedClient(.started()) }

    @Test("wrong PINs lead to the CAN and then to the PUK, which resets the tries")
    func ladder() async throws {
        try await user.play(
            """
            \(Script.askedPIN)
            \(Script.threeWrongPINs)
            > SET_PUK 9876543210
            \(Script.asksPIN())
            \(Script.rightPIN)
            \(Script.changed)
            """
        )
        let card = try #require(await server.cardState())
        #expect(card.retryCounter == 3)
        #expect(card.pukCounter == 9)
        #expect(card.judgedPINs == 4)
        #expect(await server.hasPIN("654321"))
    }

    @Test("a wrong CAN repeats the question and costs no try of the PIN")
    func wrongCAN() async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"retryCounter":1}
            < READER 1
            < ENTER_CAN 1
            > SET_CAN 111111
            < ENTER_CAN 1
            > SET_CAN 222222
            < ENTER_CAN 1
            > SET_CAN 500540
            < ENTER_PIN 1
            \(Script.rightPINAfterWrong)
            \(Script.changed)
            """
        )
        #expect(await server.cardState()?.judgedPINs == 1)
    }

    @Test(
        "a CAN or PUK to which the card gives no answer is not called wrong",
        arguments: [
            ("1", "11", "mute", "CAN 500540"), ("1", "12", "muteAfter", "CAN 500540"),
            ("0", "14", "muteAfter", "PUK 9876543210"), ("0", "13", "mute", "PUK 9876543210"),
        ]
    )
    func unanswered(tries: String, command: String, action: String, answer: String) async throws {
        let kind = answer.prefix(3)
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"retryCounter":\(tries),"faults":[{"afterApdu":\(command),"do":"\(action)"}]}
            < READER \(tries)
            < ENTER_\(kind) \(tries)
            > SET_\(answer)
            < ENTER_\(kind) \(tries) unanswered: \(Script.unanswered)
            > SET_\(kind) 12
            < ENTER_\(kind) \(tries): You must provide \(kind == "CAN" ? 6 : 10) digits
            > SET_\(kind) \(kind == "CAN" ? "111111" : "1111111111")
            < ENTER_\(kind) \(tries)
            \(Script.cancelled)
            """
        )
    }

    @Test(
        "if the daemon ends before the card answers, the client is told what is known",
        arguments: [
            (0x86, nil, "false User_Cancelled"), (0x2C, nil, "false Change_Pin_No_SetEidPinCommand_Response"),
            (0x22, 0x2C, "true"),
        ] as [(UInt8, UInt8?, String)]
    )
    func abandoned(silent: UInt8, after: UInt8?, end: String) async throws {
        let recorder = try RecordingReaders()
        let user = try await ScriptedClient(.started(recorder))
        let gate = recorder.gate { _, command in
            command.ins == silent && (after == nil || recorder.recorded.last?.command.ins == after)
        }
        try await user.play("\(Script.askedPIN)\n> SET_PIN 123456")
        if silent != 0x86 { try await user.play("< ENTER_NEW_PIN 3\n> SET_NEW_PIN 654321") }
        await gate.arrival()
        user.server.server.abandonWorkflows()
        try await user.play("< CHANGE_PIN \(end)")
        gate.open()
        await user.server.released("Simulator")
    }

    @Test("a wrong PUK repeats the question and costs no use of the PUK")
    func wrongPUK() async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"retryCounter":0}
            < READER 0
            < ENTER_PUK 0
            > SET_PUK 0000000000
            < ENTER_PUK 0
            > SET_PUK 1111111111
            < ENTER_PUK 0
            > SET_PUK 9876543210
            \(Script.asksPIN())
            \(Script.cancelled)
            """
        )
        let card = try #require(await server.cardState())
        #expect(card.retryCounter == 3)
        #expect(card.pukCounter == 9)
        #expect(card.judgedPINs == 0)
    }

    @Test("a suspended card gets the PIN inside the CAN channel, without plain commands in between")
    func nestedChannel() async throws {
        let recorder = try RecordingReaders()
        let user = try await ScriptedClient(.started(recorder))
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"retryCounter":1}
            < READER 1
            < ENTER_CAN 1
            """
        )
        recorder.forget()
        try await user.play(
            """
            > SET_CAN 500540
            < ENTER_PIN 1
            \(Script.rightPINAfterWrong)
            \(Script.changed)
            """
        )
        let log = recorder.recorded.map(\.command.short)
        #expect(
            log == [
                "22 plain", "86 plain chained", "86 plain chained", "86 plain chained", "86 plain",
                "22 secured", "86 secured chained", "86 secured chained", "86 secured chained", "86 secured",
                "2C secured", "22 plain",
            ]
        )
    }

    @Test("a used-up PUK ends the workflow and marks the card, and the next workflow reports the card and waits")
    func usedUpPUK() async throws {
        let recorder = try RecordingReaders(plugged: ["Simulator"])
        let user = try await ScriptedClient(.started(recorder))
        #expect(
            try await recorder.insert(
                VirtualEIDDescription.card { ($0.retryCounter, $0.pukCounter) = (0, 0) },
                into: "Simulator"
            )
        )
        try await user.play(
            """
            < READER 0
            \(Script.begun)
            < ENTER_PUK 0
            > SET_PUK 9876543210
            < READER 0 inoperative
            < CHANGE_PIN false Establish_Pace_Channel_Puk_Inoperative
            \(Script.begun)
            < INSERT_CARD inoperative
            """
        )
        await user.isQuiet()
        await recorder.removeCard(from: "Simulator")
        try await user.play("< READER -")
        #expect(try await recorder.insert(VirtualEIDDescription.card(), into: "Simulator"))
        try await user.play(
            """
            \(Script.asksPIN())
            \(Script.cancelledInPlace)
            """
        )
    }

    @Test("the last use of the PUK unblocks the PIN, and the next use is refused")
    func lastUseOfPUK() async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"retryCounter":0,"pukCounter":1}
            < READER 0
            < ENTER_PUK 0
            > SET_PUK 9876543210
            \(Script.asksPIN())
            \(Script.threeWrongPINs)
            > SET_PUK 9876543210
            < READER 0 inoperative
            < READER -
            < CHANGE_PIN false Establish_Pace_Channel_Puk_Inoperative
            """
        )
    }

    @Test("a transport PIN of five digits is replaced by a PIN of six digits")
    func transportPIN() async throws {
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"transportPin":"98765"}
            \(Script.asksPIN())
            > SET_PIN 987650
            \(Script.asksPIN(2))
            > SET_PIN 98765
            < READER 3
            < ENTER_NEW_PIN 3
            > SET_NEW_PIN 98765
            < ENTER_NEW_PIN 3: You must provide 6 digits
            \(Script.changed)
            """
        )
        #expect(await server.cardState()?.isTransport == false)
        #expect(await server.hasPIN("654321"))
    }

    @Test(
        "a malformed value is refused and never reaches the card",
        arguments: ["1234", "1234567", "12345a", "", " 12345", "123456\\n", "１２３４５６"]
    )
    func wrongForm(value: String) async throws {
        try await user.play(
            """
            \(Script.askedPIN)
            > {"cmd":"SET_PIN","value":"\(value)"}
            < ENTER_PIN 3: You must provide 5 - 6 digits
            \(Script.rightPIN)
            \(Script.cancelled)
            """
        )
        #expect(await server.cardState()?.judgedPINs == 1)
    }

    @Test("the card of SET_CARD gets a new PIN, is taken out, and keeps the PIN for the next workflow")
    func newPINIsKept() async throws {
        try await user.play(
            """
            \(Script.askedPIN)
            \(Script.rightPIN)
            \(Script.changed)
            \(Script.askedPIN)
            > SET_PIN 123456
            \(Script.asksPIN(2))
            > SET_PIN 654321
            < READER 3
            < ENTER_NEW_PIN 3
            > SET_NEW_PIN 111222
            < READER -
            < CHANGE_PIN true
            """
        )
        await user.isQuiet()
        #expect(await server.hasPIN("111222"))
    }
}
