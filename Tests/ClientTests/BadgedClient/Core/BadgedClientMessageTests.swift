// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import BadgedClient

/// A message as badged sends it, and how the client reads it.
struct MessageCase: Sendable, CustomTestStringConvertible {
    let text: String
    let expected: any ServerMessage

    init(_ text: String, _ expected: any ServerMessage) { (self.text, self.expected) = (text, expected) }

    var testDescription: String { text }

    /// Reads the message twice: as it is, and with the members of every object in reverse order.
    func check() throws {
        let event = try event(text)
        let isSame = isEqual(expected, event.message)
        #expect(isSame, "\(event.message)")
        #expect(event.text == text)
        let reversed = try ClientTests.event(String(decoding: event.json.reversed.bytes, as: UTF8.self))
        let isSameReversed = isEqual(expected, reversed.message)
        #expect(isSameReversed, "\(reversed.message)")
    }

    private func isEqual<Message: ServerMessage>(_ message: Message, _ other: any ServerMessage) -> Bool {
        message == other as? Message
    }
}

extension JSON {
    fileprivate var reversed: JSON {
        switch self {
        case .object(let members): .object(members.reversed().map { Member($0.key, $0.value.reversed) })
        case .array(let items): .array(items.map(\.reversed))
        default: self
        }
    }
}

func event(_ text: String) throws -> Event {
    try Array(text.utf8).withUnsafeBytes { try Event($0) }
}

@Suite("Messages of the core", .timeLimit(.minutes(5))) struct CoreMessageTests {
    private static let cases = [
        MessageCase(
            #"{"msg":"INFO","VersionInfo":{"Name":"badged","Implementation-Version":"1.2"},"#
                + #""badged":{"protocol":1,"drivers":["pcsc"],"scanners":["mgmt"]}}"#,
            DaemonInfo(name: "badged", version: "1.2", protocolVersion: 1, drivers: ["pcsc"], scanners: ["mgmt"])
        ),
        MessageCase(
            #"{"msg":"INFO","VersionInfo":{"Name":"AusweisApp2"}}"#,
            DaemonInfo(name: "AusweisApp2", version: "")
        ),
        MessageCase(
            #"{"msg":"API_LEVEL","available":[1,2,3],"current":3}"#,
            APILevels(current: 3, available: [1, 2, 3])
        ),
        MessageCase(#"{"msg":"API_LEVEL","current":2}"#, APILevels(current: 2)),
        MessageCase(
            #"{"msg":"API_LEVEL","error":"Invalid level","current":2}"#,
            Refusal(name: "API_LEVEL", error: "Invalid level")
        ),
        MessageCase(
            #"{"msg":"HEALTH","checks":[{"name":"pcscd","ok":false,"advice":"start it"},{"name":"nfc","ok":true},"#
                + #"{"name":"bluetoothScan","ok":false,"advice":"move it","errorAgo":1500}]}"#,
            HealthReport(checks: [
                HealthCheck(name: "pcscd", isOK: false, advice: "start it"),
                HealthCheck(name: "nfc", isOK: true),
                HealthCheck(name: "bluetoothScan", isOK: false, advice: "move it", errorAge: .milliseconds(1500)),
            ])
        ),
        MessageCase(
            #"{"msg":"READER","name":"R","attached":true,"insertable":true,"keypad":true,"busy":true,"card":null}"#,
            Reader(name: "R", isInsertable: true, hasKeypad: true, isBusy: true)
        ),
        MessageCase(
            #"{"msg":"READER","name":"R","attached":true,"insertable":false,"keypad":false,"card":{}}"#,
            Reader(name: "R", card: Card())
        ),
        MessageCase(#"{"msg":"READER","name":"gone","attached":false}"#, Reader(name: "gone", isAttached: false)),
        MessageCase(#"{"msg":"READER","error":"Invalid name"}"#, Refusal(name: "READER", error: "Invalid name")),
        MessageCase(
            #"{"msg":"READER_LIST","readers":[{"name":"R","attached":true,"card":{}},{"name":"S","attached":true}]}"#,
            ReaderList(readers: [Reader(name: "R", card: Card()), Reader(name: "S")])
        ),
        MessageCase(#"{"msg":"READER_LIST","readers":[]}"#, ReaderList(readers: [])),
        // API level 1
        MessageCase(
            #"{"msg":"READER_LIST","reader":[{"name":"S","attached":true}]}"#,
            ReaderList(readers: [Reader(name: "S")])
        ),
        MessageCase(
            #"{"msg":"STATUS","workflow":"CHANGE_PIN","progress":20,"state":"ENTER_PIN"}"#,
            WorkflowStatus(workflow: "CHANGE_PIN", progress: 20, state: "ENTER_PIN")
        ),
        MessageCase(#"{"msg":"STATUS","workflow":null,"progress":null,"state":null}"#, WorkflowStatus()),
        MessageCase(#"{"msg":"INSERT_CARD"}"#, InsertCard()),
        MessageCase(#"{"msg":"INSERT_CARD","error":"E","reader":"R"}"#, InsertCard(error: "E", reader: "R")),
        MessageCase(#"{"msg":"PAUSE","cause":"BadCardPosition","angle":7}"#, Pause(cause: "BadCardPosition")),
        MessageCase(#"{"msg":"ACCESS_DENIED","error":"X"}"#, Refusal(name: "ACCESS_DENIED", error: "X")),
        MessageCase(#"{"msg":"ELEVATOR","error":"X","floor":[1,{"a":2}]}"#, UnknownMessage(name: "ELEVATOR")),
        MessageCase("{}", UnreadableMessage(name: "", member: "msg")),
        MessageCase(#"{"msg":5}"#, UnreadableMessage(name: "", member: "msg")),
        MessageCase(#"{"msg":"READER","attached":true}"#, UnreadableMessage(name: "READER", member: "name")),
        MessageCase(
            #"{"msg":"READER_LIST","readers":{}}"#,
            UnreadableMessage(name: "READER_LIST", member: "readers")
        ),
        MessageCase(#"{"msg":"HEALTH"}"#, UnreadableMessage(name: "HEALTH", member: "checks")),
        MessageCase(#"{"msg":"INFO"}"#, UnreadableMessage(name: "INFO", member: "VersionInfo")),
        MessageCase(
            #"{"msg":"API_LEVEL","current":"3"}"#,
            UnreadableMessage(name: "API_LEVEL", member: "current")
        ),
        MessageCase(#"{"msg":"PAUSE"}"#, UnreadableMessage(name: "PAUSE", member: "cause")),
        MessageCase(#"{"msg":"BAD_STATE","error":1}"#, UnreadableMessage(name: "BAD_STATE", member: "error")),
    ]

    @Test("Each message is read as its type, whatever the order of its members", arguments: cases)
    func read(_ message: MessageCase) throws { try message.check() }

    @Test("Members that no type knows are in the JSON of the event")
    func unknownMembers() throws {
        let event = try event(#"{"later":[1,{"a":"\u00e4"}],"msg":"READER","name":"x"}"#)
        #expect(event.json["later"]?.array?.last?["a"] == .string("ä"))
        #expect(event.name == "READER")
    }

    @Test("A number of Swift that JSON does not have becomes null")
    func numbers() {
        let values: [Any] = [Float.nan, -Float.infinity, Double.nan, Double.infinity, Float(1.5), 2.5, UInt8(3)]
        let expected: [JSON] = [.null, .null, .null, .null, .number("1.5"), .number("2.5"), .number("3")]
        #expect(JSON(any: values) == .array(expected))
    }

    @Test(
        "A refusal is the error of its kind",
        arguments: [
            ("ACCESS_DENIED", .accessDenied(command: "X")), ("BAD_STATE", .badState(command: "X")),
            ("UNKNOWN_COMMAND", .unknownCommand("X")), ("INVALID", .refused("X")), ("INTERNAL_ERROR", .refused("X")),
            ("INSERT_CARD", .refused("X")), ("CHANGE_PIN", .refused("X")),
        ] as [(String, ClientError)]
    )
    func refusals(name: String, error: ClientError) throws {
        #expect(try event(#"{"msg":"\#(name)","error":"X"}"#).message.refusal == error)
    }

    @Test("Every error has a text and an advice without a full stop at the end")
    func errors() {
        let all: [ClientError] = [
            .invalidPath(""), .invalidPath("/x"), .notRunning(path: "/x"), .permissionDenied(path: "/x"),
            .unreachable(path: "/x", cause: "c"), .notServed("x"), .closed, .noAnswer, .malformed(.noObject),
            .unreadEvents,
            .cancelled, .accessDenied(command: "X"), .badState(command: "X"), .unknownCommand("X"), .refused("r"),
            .unexpectedAnswer("X"),
        ]
        for error in all {
            for text in [error.text, error.advice] { #expect(!text.isEmpty && !text.hasSuffix(".")) }
            #expect("\(error)" == "\(error.text); \(error.advice)")
            #expect(String(reflecting: error) == "\(error)")
        }
    }
}
