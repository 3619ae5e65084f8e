// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import Server
import TestSupport
import Testing
import Text

@Suite("SET_CARD", .timeLimit(.minutes(5)))
struct SetCardTests {
    private static let actions =
        "remove, removeAfter, mute, muteAfter, truncate, garbage, flipBit, replay, sw:XXXX, swAfter:XXXX"

    private static func refusal(_ error: String) -> JSON {
        .object([
            .init("error", .string(error)), .init("msg", .string("INSERT_CARD")), .init("request", .string("r")),
        ])
    }

    @Test(
        "an invalid parameter is reported in INSERT_CARD, and the workflow continues to wait",
        arguments: [
            (#""x":1"#, "Name cannot be undefined"),
            (#""name":5"#, "Invalid name"),
            (#""name":null"#, "Invalid name"),
            (#""name":["Simulator"]"#, "Invalid name"),
            (#""name":"""#, "Unknown reader name"),
            (#""name":"simulator""#, "Unknown reader name"),
            (#""name":"Plugged""#, "Card is not insertable"),
            (#""name":"Simulator","simulator":null"#, "Parameter 'simulator' is invalid"),
            (#""name":"Simulator","simulator":[]"#, "Parameter 'simulator' is invalid"),
            (#""name":"Simulator","simulator":"x""#, "Parameter 'simulator' is invalid"),
            (#""name":"Simulator","card":null"#, "Parameter 'card' is invalid"),
            (#""name":"Simulator","card":1"#, "Parameter 'card' is invalid"),
        ]
    )
    @Loop func parameters(_ members: String, _ error: String) async throws {
        let readers = try RecordingReaders(["Simulator", "Plugged"], plugged: ["Plugged"])
        let server = try await TestServer(readers: 0, backends: [readers])
        await server.ready(["Simulator", "Plugged"])
        let client = try server.connect()
        _ = await client.exchange(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        let line = #"{"cmd":"SET_CARD","request":"r",\#(members)}"#
        #expect(
            await client.exchange(line, #"{"cmd":"GET_STATUS"}"#) == [Self.refusal(error), Moment.insertCard.status]
        )
    }

    @Test(
        "an invalid entry is named in the error, and no card is inserted",
        arguments: [
            (#""simulator":{"files":"x"}"#, "files is not an array"),
            (#""simulator":{"files":{}}"#, "files is not an array"),
            (#""simulator":{"files":[1]}"#, "files[0] is not an object"),
            (#""simulator":{"files":[{}]}"#, "files[0].fileId is missing"),
            (#""simulator":{"files":[{"fileId":1}]}"#, "files[0].fileId is not a string"),
            (#""simulator":{"files":[{"fileId":"01011"}]}"#, "files[0].fileId has an odd number of digits"),
            (#""simulator":{"files":[{"fileId":"01"}]}"#, "files[0].fileId is not 2 bytes in hexadecimal"),
            (#""simulator":{"files":[{"fileId":"01zz"}]}"#, "files[0].fileId is not hexadecimal"),
            (#""simulator":{"files":[{"fileId":"0101"}]}"#, "files[0].shortFileId is missing"),
            (
                #""simulator":{"files":[{"fileId":"0101","shortFileId":"0101"}]}"#,
                "files[0].shortFileId is not 1 byte in hexadecimal"
            ),
            (#""simulator":{"files":[{"fileId":"0101","shortFileId":"01"}]}"#, "files[0].content is missing"),
            (
                #""simulator":{"files":[{"fileId":"0101","shortFileId":"01","content":""},{}]}"#,
                "files[1].fileId is missing"
            ),
            (
                #""simulator":{"files":[{"fileId":"0101","shortFileId":"01","content":"\#(tooLong)"}]}"#,
                "files[0].content is longer than 65535 bytes"
            ),
            (#""simulator":{"files":[\#(many("1"))]}"#, "files has more than 256 entries"),
            (#""simulator":{"keys":1}"#, "keys is not an array"),
            (#""simulator":{"keys":[1]}"#, "keys[0] is not an object"),
            (#""simulator":{"keys":[{}]}"#, "keys[0].id is not a whole number above 0"),
            (#""simulator":{"keys":[{"id":0}]}"#, "keys[0].id is not a whole number above 0"),
            (#""simulator":{"keys":[{"id":1.5}]}"#, "keys[0].id is not a whole number above 0"),
            (#""simulator":{"keys":[{"id":4294967296}]}"#, "keys[0].id is not a whole number above 0"),
            (#""simulator":{"keys":[{"id":1}]}"#, "keys[0].content is missing"),
            (#""simulator":{"keys":[\#(many("1"))]}"#, "keys has more than 256 entries"),
            (#""simulator":{"keys":[{"id":256,"content":"00"}]}"#, "keys[0].id is not from 1 to 255"),
            (
                #""simulator":{"keys":[{"id":1,"content":"00"}]}"#,
                "keys[0].content is not a PKCS#8 key on a standardized elliptic curve"
            ),
            (
                #""simulator":{"files":[{"fileId":"0101","shortFileId":"1f","content":""}]}"#,
                "files[0].shortFileId is not from 01 to 1E"
            ),
        ]
    )
    @Loop func simulatorEntries(_ members: String, _ error: String) async throws {
        try await refuses(members, "Parameter 'simulator' is invalid: \(error)")
    }

    @Test(
        "an invalid member of `card` is named in the error, and no card is inserted",
        arguments: [
            (#"{"pin":123456}"#, "card.pin is not a string of 6 digits"),
            (#"{"pin":"12345"}"#, "card.pin is not a string of 6 digits"),
            (#"{"pin":"12345a"}"#, "card.pin is not a string of 6 digits"),
            (#"{"can":"1234567"}"#, "card.can is not a string of 6 digits"),
            (#"{"puk":"123456789"}"#, "card.puk is not a string of 10 digits"),
            (#"{"transportPin":"123456"}"#, "card.transportPin is not a string of 5 digits"),
            (#"{"retryCounter":4}"#, "card.retryCounter is not a whole number from 0 to 3"),
            (#"{"retryCounter":"3"}"#, "card.retryCounter is not a whole number from 0 to 3"),
            (#"{"retryCounter":-1}"#, "card.retryCounter is not a whole number from 0 to 3"),
            (#"{"pukCounter":11}"#, "card.pukCounter is not a whole number from 0 to 10"),
            (#"{"deactivated":1}"#, "card.deactivated is not true or false"),
            (#"{"keypad":"yes"}"#, "card.keypad is not true or false"),
            (#"{"latencyMs":60001}"#, "card.latencyMs is not a whole number from 0 to 60000"),
            (#"{"faults":{}}"#, "card.faults is not an array"),
            (#"{"faults":[1]}"#, "card.faults[0] is not an object"),
            (#"{"faults":[{}]}"#, "card.faults[0].afterApdu is missing"),
            (
                #"{"faults":[{"afterApdu":-1}]}"#,
                "card.faults[0].afterApdu is not a whole number from 0 to 1000000"
            ),
            (
                #"{"faults":[{"afterApdu":1}]}"#,
                "card.faults[0].do is not one of \(Self.actions)"
            ),
            (
                #"{"faults":[{"afterApdu":1,"do":"sw:12"}]}"#,
                "card.faults[0].do is not one of \(Self.actions)"
            ),
            (
                #"{"faults":[{"afterApdu":1,"do":"sw:+123"}]}"#,
                "card.faults[0].do is not one of \(Self.actions)"
            ),
            (#"{"faults":[\#(many("1"))]}"#, "card.faults has more than 256 entries"),
        ]
    )
    @Loop func cardMembers(_ object: String, _ error: String) async throws {
        try await refuses(#""card":\#(object)"#, "Parameter 'card' is invalid: \(error)")
    }

    private static let tooLong = String(repeating: "00", count: 65_536)

    private static func many(_ entry: String) -> String {
        Array(repeating: entry, count: 257).joined(separator: ",")
    }

    @Loop private func refuses(_ members: String, _ error: String) async throws {
        let fixture = try await Fixture(at: .insertCard)
        let line = #"{"cmd":"SET_CARD","name":"Simulator","request":"r",\#(members)}"#
        let answers = await fixture.client.exchange(line, #"{"cmd":"GET_READER","name":"Simulator"}"#)
        #expect(answers == [Self.refusal(error), .simulator(card: .null, keypad: false)])
        // The next SET_CARD succeeds.
        let next = await fixture.client.ask(#"{"cmd":"SET_CARD","name":"Simulator"}"#, "ENTER_PIN")
        #expect(next?["reader"]?["card"] == .card(tries: 3))
    }

    @Test("a second SET_CARD is ignored while a usable card is inserted")
    @Loop func occupied() async throws {
        let fixture = try await Fixture(at: .insertCard)
        let gate = fixture.readers.gate()
        let line = #"{"cmd":"SET_CARD","name":"Simulator","request":"r"}"#
        #expect(await fixture.client.exchange(line, line) == [])
        gate.open()
        #expect(await fixture.client.next("ENTER_PIN") != nil)
    }

    @Test(
        "the next SET_CARD replaces a card that cannot be used",
        arguments: [
            #""card":{"deactivated":true}"#,
            #""simulator":{"files":[{"fileId":"011c","shortFileId":"1c","content":"3100"}]}"#,
        ]
    )
    @Loop func replacesUnusableCard(_ members: String) async throws {
        let fixture = try await Fixture(at: .insertCard)
        let explanation = await fixture.client.ask(
            #"{"cmd":"SET_CARD","name":"Simulator",\#(members)}"#,
            "INSERT_CARD",
            "ENTER_PIN"
        )
        #expect(explanation?["error"] != nil)
        #expect(await fixture.client.ask(#"{"cmd":"SET_CARD","name":"Simulator","card":{}}"#, "ENTER_PIN") != nil)
    }

    @Test("an unusable card of SET_CARD is taken out at the end of the workflow")
    @Loop func takenBack() async throws {
        let fixture = try await Fixture(at: .insertCard)
        let line = #"{"cmd":"SET_CARD","name":"Simulator","card":{"deactivated":true}}"#
        _ = await fixture.client.ask(line, "INSERT_CARD")
        _ = await fixture.client.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        #expect(
            await fixture.client.exchange(#"{"cmd":"GET_READER","name":"Simulator"}"#)
                == [.simulator(card: .null, keypad: false)]
        )
    }

    @Test(
        "the card has the state that `card` describes",
        arguments: [
            (#"{"retryCounter":2}"#, "ENTER_PIN"), (#"{"retryCounter":1}"#, "ENTER_CAN"),
            (#"{"retryCounter":0}"#, "ENTER_PUK"), (#"{"transportPin":true}"#, "ENTER_PIN"),
        ]
    )
    @Loop func cardCounts(_ object: String, _ question: String) async throws {
        let fixture = try await Fixture(at: .insertCard)
        let line = #"{"cmd":"SET_CARD","name":"Simulator","card":\#(object)}"#
        #expect(await fixture.client.ask(line, "ENTER_PIN", "ENTER_CAN", "ENTER_PUK")?["msg"]?.string == question)
    }

    @Test("the own card of a virtual reader keeps its new PIN for the next workflow")
    @Loop func keepsPIN() async throws {
        let fixture = try await Fixture(at: .insertCard)
        let card = #"{"cmd":"SET_CARD","name":"Simulator","card":{"pin":"111111"}}"#
        _ = await fixture.client.ask(card, "ENTER_PIN")
        _ = await fixture.client.ask(#"{"cmd":"SET_PIN","value":"111111"}"#, "ENTER_NEW_PIN")
        let changed = await fixture.client.ask(#"{"cmd":"SET_NEW_PIN","value":"222222"}"#, "CHANGE_PIN")
        #expect(changed == #"{"msg":"CHANGE_PIN","success":true}"#)
        _ = await fixture.client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        _ = await fixture.client.ask(#"{"cmd":"SET_CARD","name":"Simulator"}"#, "ENTER_PIN")
        let question = await fixture.client.ask(#"{"cmd":"SET_PIN","value":"222222"}"#, "ENTER_NEW_PIN", "ENTER_PIN")
        #expect(question?["msg"] == .string("ENTER_NEW_PIN"))
    }
}
