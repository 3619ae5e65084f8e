// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import NFCTestSupport
import Readers
import Server
import TestSupport
import Testing
import Text
import VirtualEID

/// Injects every radio fault into every frame exchange of a dialogue.
///
/// The block protocol recovers transient faults, no fault changes the retry counter, and the client gets the right
/// result.
@Suite("Faults of NFC", .timeLimit(.minutes(15)))
struct NFCFaultMatrixTests {
    /// Faults that the block protocol recovers.
    private static let harmless: [RadioField.Fault] = [
        .commandLost, .answerLost, .answerDamaged, .garbage([0xFF, 0x00, 0xFF]), .slow(2),
    ]
    /// Faults that end the exchange.
    private static let harmful: [RadioField.Fault] = [.powerLost, .removed, .removedAfter]

    /// The result of a dialogue with a user who knows all secrets and puts the card back when asked.
    private struct Outcome {
        var questions: [String] = []
        var success: Bool?
        var reason: String?
    }

    @Loop private static func run(_ fixture: NFCFixture) async throws -> Outcome {
        var outcome = Outcome()
        let client = try fixture.server.connect()
        await client.send(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(fixture.reader)"}"#)
        while outcome.success == nil, outcome.questions.count < 20, let message = await client.next() {
            let name = message["msg"]?.string ?? "?"
            switch name {
            case "ENTER_PIN": await client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
            case "ENTER_CAN": await client.send(#"{"cmd":"SET_CAN","value":"500540"}"#)
            case "ENTER_PUK": await client.send(#"{"cmd":"SET_PUK","value":"9876543210"}"#)
            case "ENTER_NEW_PIN": await client.send(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#)
            case "PAUSE": await client.send(#"{"cmd":"CONTINUE"}"#)
            case "INSERT_CARD": fixture.insert()
            case "CHANGE_PIN":
                outcome.success = message["success"]?.bool
                outcome.reason = message["reason"]?.string
                continue
            default: continue
            }
            outcome.questions.append(name)
        }
        client.close()
        await fixture.server.clients(0)
        return outcome
    }

    /// The number of exchanges in a dialogue without a fault, with and without those of the identification before it.
    @Loop private static func length(_ technology: PICC.Technology, tries: Int) async throws -> (all: Int, before: Int)
    {
        let fixture = try await NFCFixture(technology, .quick { $0.retryCounter = tries })
        try await fixture.insertAndWait()
        let before = fixture.field.exchanges
        let outcome = try await run(fixture)
        try #require(outcome.success == true)
        return (fixture.field.exchanges, before)
    }

    @Test("a lost, damaged, invalid or late block in any exchange does not affect the dialogue", arguments: [3, 1, 0])
    @Loop func harmless(tries: Int) async throws {
        for technology in [PICC.Technology.a, .b] {
            let (all, before) = try await Self.length(technology, tries: tries)
            let questions = tries == 3 ? 2 : 3
            // Without the full table the fault hits every third exchange.
            let step = FullTables.areWanted ? 1 : 3
            for index in stride(from: before + (technology == .a ? 0 : 1), to: all - 1, by: step) {
                let fault = Self.harmless[index % Self.harmless.count]
                let fixture = try await NFCFixture(technology, .quick { $0.retryCounter = tries })
                try await fixture.insertAndWait()
                fixture.field.plan([index: fault])
                let outcome = try await Self.run(fixture)
                #expect(outcome.success == true && outcome.reason == nil, "\(technology) \(index) \(fault)")
                // A damaged frame in the activation after a reset can end the insertion, but not a dialogue step.
                #expect(outcome.questions.filter { $0 != "INSERT_CARD" }.count >= questions)
                let state = try #require(await fixture.card.eidState)
                #expect(state.retryCounter == 3 && state.judgedPINs >= 1, "\(technology) \(index) \(fault)")
                #expect(await fixture.hasPIN("654321"))
            }
        }
    }

    @Test("a card that loses power or leaves in any exchange loses no try, and the client gets the right result")
    @Loop func harmful() async throws {
        let (all, before) = try await Self.length(.a, tries: 3)
        for index in before..<all - 1 {
            for (number, fault) in Self.harmful.enumerated() {
                // Without the full table each exchange has one fault.
                guard FullTables.areWanted || index % Self.harmful.count == number else { continue }
                let fixture = try await NFCFixture(.a, .quick())
                try await fixture.insertAndWait()
                fixture.field.plan([index: fault])
                let outcome = try await Self.run(fixture)
                let place = "exchange \(index), \(fault): \(outcome)"
                let (isNew, isOld) = (await fixture.hasPIN("654321"), await fixture.hasPIN("123456"))
                #expect(isNew != isOld, "\(place)")
                #expect(await fixture.card.eidState?.retryCounter == 3, "\(place)")
                switch outcome.success {
                case true?: #expect(isNew && outcome.reason == nil, "\(place)")
                case false?:
                    // Only the loss of the answer that confirms the change leaves the result open.
                    #expect(outcome.reason == "Change_Pin_No_SetEidPinCommand_Response", "\(place)")
                case nil: Issue.record("the dialogue did not end: \(place)")
                }
            }
        }
    }
}
