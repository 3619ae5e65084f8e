// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import Server
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("Values of SET_PIN, SET_NEW_PIN, SET_CAN and SET_PUK", .timeLimit(.minutes(5)))
struct ValueTests {
    /// A question and the command that answers it.
    struct Question: Sendable, CustomTestStringConvertible {
        let moment: Moment
        let command: String
        let digits: String
        /// Well-formed values with and without escapes; most of them are wrong for the card.
        let wellFormed: [String]

        var testDescription: String { command }
    }

    private static let questions = [
        Question(
            moment: .enterPIN,
            command: "SET_PIN",
            digits: "5 - 6",
            wellFormed: [#""12345""#, #""000000""#, #""\u0031\u0031\u0031111""#, #""1111\u00311""#]
        ),
        Question(moment: .enterCAN, command: "SET_CAN", digits: "6", wellFormed: [#""000000""#, #""11111\u0031""#]),
        Question(moment: .enterPUK, command: "SET_PUK", digits: "10", wellFormed: [#""0000000000""#]),
        Question(
            moment: .enterNewPIN,
            command: "SET_NEW_PIN",
            digits: "6",
            wellFormed: [#""654321""#, #""\u0036\u0035\u0034\u0033\u0032\u0031""#]
        ),
    ]

    private static let malformed = [
        #""""#, #""1""#, #""1234""#, #""1234567""#, #""123456789""#, #""12345678901""#, #"" 123456""#, #""123456 ""#,
        #""123456\n""#, #""1234567890\n""#, #""12345\n""#, #""\n123456""#, #""123456\u0000""#, #""12345a""#,
        #""12 345""#, #""+12345""#, #""12345.""#, #""0x1234""#, #""１２３４５６""#, #""12\u0663456""#,
        #""\ud835\udfce12345""#, #""１""#, #""१२३४५६""#, #""12345\u200b""#,
    ]

    @Test("a malformed value is refused and never reaches the card", arguments: questions)
    @Loop func malformed(_ question: Question) async throws {
        let fixture = try await Fixture(at: question.moment)
        fixture.readers.forget()
        let name = try #require(question.moment.state)
        for value in Self.malformed {
            let line = #"{"cmd":"\#(question.command)","request":"r","value":\#(value)}"#
            let answers = await fixture.client.exchange(line)
            #expect(answers.count == 1, "\(value)")
            #expect(answers.first?["msg"]?.string == name, "\(value)")
            #expect(answers.first?["error"]?.string == "You must provide \(question.digits) digits", "\(value)")
            #expect(answers.first?["request"] == .string("r"))
            #expect(answers.first?["reader"]?["name"] == .string("Simulator"))
        }
        #expect(fixture.readers.recorded.isEmpty)
        #expect(await fixture.client.exchange(#"{"cmd":"GET_STATUS"}"#) == [question.moment.status])
    }

    @Test("a value of another type and a missing value are refused", arguments: questions)
    @Loop func types(_ question: Question) async throws {
        let fixture = try await Fixture(at: question.moment)
        for value in ["123456", "null", "true", "[\"123456\"]", "{\"value\":\"123456\"}", "1e5"] {
            let answers = await fixture.client.exchange(#"{"cmd":"\#(question.command)","value":\#(value)}"#)
            #expect(answers.map { $0["error"]?.string } == ["Invalid value"], "\(value)")
        }
        let answers = await fixture.client.exchange(#"{"cmd":"\#(question.command)","Value":"123456"}"#)
        #expect(answers.map { $0["error"]?.string } == ["Value cannot be undefined"])
    }

    @Test("a well-formed value, escaped or not, is sent to the card", arguments: questions)
    @Loop func wellFormed(_ question: Question) async throws {
        for value in question.wellFormed {
            let fixture = try await Fixture(at: question.moment)
            fixture.readers.forget()
            let answer = await fixture.client.ask(
                #"{"cmd":"\#(question.command)","value":\#(value)}"#,
                "ENTER_PIN",
                "ENTER_CAN",
                "ENTER_PUK",
                "ENTER_NEW_PIN",
                "CHANGE_PIN"
            )
            #expect(answer?["error"] == nil, "\(value)")
            #expect(!fixture.readers.recorded.isEmpty, "\(value)")
        }
    }

    @Test("the last of several `value` members is used")
    @Loop func duplicates() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        let answer = await fixture.client.ask(
            #"{"cmd":"SET_PIN","value":"12","value":"123456"}"#,
            "ENTER_PIN",
            "ENTER_NEW_PIN"
        )
        #expect(answer?["msg"] == .string("ENTER_NEW_PIN"))
    }

    // MARK: Question numbers

    @Test("a value for a removed card is not used for the next card")
    @Loop func crossing() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        await fixture.server.withdraw()
        _ = try #require(await fixture.client.next("INSERT_CARD"))
        try await fixture.server.insert(.card { $0.pin = SecretBox(digits: "222222") })
        let second = try #require(await fixture.client.next("ENTER_PIN"))
        #expect(second["question"] == .number("2"))
        fixture.readers.forget()
        // The client answers the first question and has not read the second one.
        let answers = await fixture.client.exchange(#"{"cmd":"SET_PIN","question":1,"request":1,"value":"123456"}"#)
        #expect(answers == [#"{"error":"SET_PIN","msg":"BAD_STATE","request":1}"#])
        #expect(fixture.readers.recorded.isEmpty)
        // The second question is still open.
        let line = #"{"cmd":"SET_PIN","question":2,"value":"222222"}"#
        let next = await fixture.client.ask(line, "ENTER_NEW_PIN", "ENTER_PIN", "BAD_STATE")
        #expect(next?["msg"] == .string("ENTER_NEW_PIN"))
        #expect(next?["question"] == .number("3"))
    }

    @Test("a wrong question number is BAD_STATE, also with a malformed value")
    @Loop func wrongQuestion() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        fixture.readers.forget()
        for number in ["0", "2", "-1", "1.5", "99999999999999999999", #""1""#, "null", "[1]", "true"] {
            for value in [#""123456""#, "5"] {
                let line = #"{"cmd":"SET_PIN","question":\#(number),"value":\#(value)}"#
                #expect(await fixture.client.exchange(line) == [#"{"error":"SET_PIN","msg":"BAD_STATE"}"#], "\(number)")
            }
        }
        #expect(fixture.readers.recorded.isEmpty)
        // A refused value does not change the number of the open question.
        let refusal = await fixture.client.ask(#"{"cmd":"SET_PIN","question":1,"value":"12"}"#, "ENTER_PIN")
        #expect(refusal?["question"] == .number("1"))
        #expect(await fixture.client.ask(#"{"cmd":"SET_PIN","question":1,"value":"123456"}"#, "ENTER_NEW_PIN") != nil)
    }

    @Test("the keypad is not started with the number of an earlier question")
    @Loop func keypadCrossing() async throws {
        let fixture = try await Fixture(at: .insertCard)
        let card = #"{"cmd":"SET_CARD","name":"Simulator","card":{"keypad":true}}"#
        _ = try #require(await fixture.client.ask(card, "ENTER_PIN"))
        await fixture.server.withdraw()
        _ = try #require(await fixture.client.next("INSERT_CARD"))
        _ = try #require(await fixture.client.ask(card, "ENTER_PIN"))
        let answers = await fixture.client.exchange(#"{"cmd":"SET_PIN","question":1}"#)
        #expect(answers == [#"{"error":"SET_PIN","msg":"BAD_STATE"}"#])
        #expect(await fixture.client.ask(#"{"cmd":"SET_PIN","question":2}"#, "ENTER_NEW_PIN") != nil)
    }

    // MARK: Keypad

    @Test("a reader with a keypad accepts no value and asks the user itself")
    @Loop func keypad() async throws {
        let fixture = try await Fixture(at: .insertCard)
        let card = #"{"cmd":"SET_CARD","name":"Simulator","card":{"keypad":true}}"#
        let question = try #require(await fixture.client.ask(card, "ENTER_PIN"))
        #expect(question["reader"]?["keypad"] == .bool(true))
        for value in [#""123456""#, #""""#, "null", "5"] {
            let answers = await fixture.client.exchange(#"{"cmd":"SET_PIN","request":1,"value":\#(value)}"#)
            #expect(
                answers == [
                    question.with("error", .string("Value cannot be defined")).with("request", .number("1"))
                ]
            )
        }
        #expect(
            await fixture.client.ask(#"{"cmd":"SET_PIN"}"#, "ENTER_NEW_PIN", "ENTER_PIN")?["msg"]?.string
                == "ENTER_NEW_PIN"
        )
        let answers = await fixture.client.exchange(#"{"cmd":"SET_NEW_PIN","value":"123456"}"#)
        #expect(answers.map { $0["error"]?.string } == ["Value cannot be defined"])
        let final = await fixture.client.ask(#"{"cmd":"SET_NEW_PIN"}"#, "CHANGE_PIN")
        #expect(final == #"{"msg":"CHANGE_PIN","success":true}"#)
    }

    @Test("CANCEL during keypad input ends the workflow")
    @Loop func cancelKeypad() async throws {
        let fixture = try await Fixture(at: .insertCard)
        let card = #"{"cmd":"SET_CARD","name":"Simulator","card":{"keypad":true}}"#
        _ = try #require(await fixture.client.ask(card, "ENTER_PIN"))
        let gate = fixture.readers.gate()
        await fixture.client.send(#"{"cmd":"SET_PIN"}"#)
        await gate.arrival()
        // The server has read CANCEL when the following command is answered.
        let before = await fixture.client.exchange(#"{"cmd":"CANCEL"}"#)
        #expect(!before.contains { $0.isMessage("CHANGE_PIN") })
        gate.open()
        let final = await fixture.client.next("CHANGE_PIN", "ENTER_NEW_PIN")
        #expect(final == #"{"msg":"CHANGE_PIN","reason":"User_Cancelled","success":false}"#)
        #expect(!fixture.server.isLent())
    }
}
