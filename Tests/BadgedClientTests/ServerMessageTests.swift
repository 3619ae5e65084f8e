// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Wire

@testable import BadgedClient

private func event(_ text: String) throws -> Event {
    try Array(text.utf8).withUnsafeBytes { try Event($0) }
}

private func written(_ message: Message, _ level: APILevel = .three) -> String {
    var writer = JSONWriter()
    message.write(to: &writer, level: level)
    return String(decoding: writer.bytes, as: UTF8.self)
}

private let eid = ReaderState(
    name: "R",
    attached: .init(
        insertable: true,
        keypad: true,
        card: .eid(retryCounter: 1, deactivated: true, inoperative: true),
        busy: true
    )
)
private let eidRead = Reader(
    name: "R",
    isInsertable: true,
    hasKeypad: true,
    isBusy: true,
    card: .eid(retryCounter: 1, deactivated: true, inoperative: true)
)
private let plain = ReaderState(
    name: "S",
    attached: .init(insertable: false, keypad: false, card: .unknown, busy: false)
)

@Suite("Messages as the client reads them") struct ServerMessageTests {
    @Test(
        "what the server writes is what the client reads, in every kind of message",
        arguments: [
            (.accessDenied(command: "SET_PIN"), .accessDenied(command: "SET_PIN")),
            (
                .apiLevel(current: .three, withAvailable: true, error: nil),
                .apiLevel(APILevels(current: 3, available: [1, 2, 3]), error: nil)
            ),
            (
                .apiLevel(current: .two, withAvailable: false, error: "Invalid level"),
                .apiLevel(APILevels(current: 2), error: "Invalid level")
            ),
            (.badState(command: "X"), .badState(command: "X")),
            (.changePINStarted, .changePINStarted),
            (.changePINRefused(error: "Invalid name"), .changePINRefused(error: "Invalid name")),
            (.changePINEnded(success: true, reason: nil), .changePINEnded(success: true, reason: nil)),
            (
                .changePINEnded(success: false, reason: "Card_Removed"),
                .changePINEnded(success: false, reason: "Card_Removed")
            ),
            (.enter(.enterPIN, error: nil, reader: eid), .enter(.pin, error: nil, reader: eidRead)),
            (.enter(.enterCAN, error: "E", reader: eid), .enter(.can, error: "E", reader: eidRead)),
            (
                .enter(.enterNewPIN, error: nil, reader: plain),
                .enter(.newPIN, error: nil, reader: Reader(name: "S", card: .unknown))
            ),
            (
                .enter(.enterPUK, error: nil, reader: ReaderState(name: "gone", attached: nil)),
                .enter(.puk, error: nil, reader: Reader(name: "gone", isAttached: false))
            ),
            (
                .health([.init(name: "pcscd", ok: false, advice: "start it"), .init(name: "v", ok: true, advice: nil)]),
                .health([
                    HealthCheck(name: "pcscd", isOK: false, advice: "start it"), HealthCheck(name: "v", isOK: true),
                ])
            ),
            (
                .info(ServerInfo(version: "1.2", drivers: ["pcsc"], scanners: ["mgmt"])),
                .info(
                    DaemonInfo(
                        name: "badged",
                        version: "1.2",
                        protocolVersion: 1,
                        drivers: ["pcsc"],
                        scanners: ["mgmt"]
                    )
                )
            ),
            (.insertCard(error: nil, reader: nil), .insertCard(error: nil, reader: nil)),
            (.insertCard(error: "E", reader: "R"), .insertCard(error: "E", reader: "R")),
            (.internalError("E"), .internalError(error: "E")),
            (.invalid("E"), .invalid(error: "E")),
            (.pause(cause: "BadCardPosition"), .pause(cause: "BadCardPosition")),
            (.reader(eid), .reader(eidRead)),
            (.reader(ReaderState(name: "gone", attached: nil)), .reader(Reader(name: "gone", isAttached: false))),
            (.readerRefused(error: "Invalid name"), .readerRefused(error: "Invalid name")),
            (.readerList([eid, plain]), .readerList([eidRead, Reader(name: "S", card: .unknown)])),
            (.readerList([]), .readerList([])),
            (
                .status(workflow: .changePIN, progress: 20, state: .enterPIN),
                .status(WorkflowStatus(workflow: "CHANGE_PIN", progress: 20, state: "ENTER_PIN"))
            ),
            (.status(workflow: nil, progress: nil, state: nil), .status(WorkflowStatus())),
            (.unknownCommand("X"), .unknownCommand("X")),
        ] as [(Message, ServerMessage)]
    )
    func roundTrip(message: Message, expected: ServerMessage) throws {
        let event = try event(written(message))
        #expect(event.message == expected)
        #expect(event.name == message.name.description)
    }

    @Test("a list of API level 1 is read too, with unknown cards unseen")
    func levelOne() throws {
        #expect(try event(written(.readerList([plain]), .one)).message == .readerList([Reader(name: "S")]))
    }

    @Test("an unknown message, and unknown members of a known one, are kept")
    func unknown() throws {
        let text = #"{"later":[1,{"a":"\u00e4"}],"msg":"DOOR_READER","name":"x"}"#
        let unknown = try event(text)
        #expect(unknown.message == .unknown(name: "DOOR_READER"))
        #expect(unknown.text == text)
        #expect(unknown.json["later"]?.array?.last?["a"] == .string("ä"))
        let known = try event(#"{"msg":"PAUSE","cause":"BadCardPosition","angle":7}"#)
        #expect(known.message == .pause(cause: "BadCardPosition"))
        #expect(known.json["angle"]?.int == 7)
    }

    @Test(
        "a message that lacks what it needs is told as that, with the member",
        arguments: [
            ("{}", "", "msg"), (#"{"msg":5}"#, "", "msg"), (#"{"msg":"ENTER_PIN"}"#, "ENTER_PIN", "reader"),
            (#"{"msg":"ENTER_PUK","reader":{"attached":true}}"#, "ENTER_PUK", "reader"),
            (#"{"msg":"READER","attached":true}"#, "READER", "name"),
            (#"{"msg":"READER_LIST","readers":{}}"#, "READER_LIST", "readers"),
            (#"{"msg":"HEALTH"}"#, "HEALTH", "checks"), (#"{"msg":"INFO"}"#, "INFO", "VersionInfo"),
            (#"{"msg":"API_LEVEL","current":"3"}"#, "API_LEVEL", "current"),
            (#"{"msg":"CHANGE_PIN","success":"yes"}"#, "CHANGE_PIN", "success"),
            (#"{"msg":"PAUSE"}"#, "PAUSE", "cause"), (#"{"msg":"BAD_STATE","error":1}"#, "BAD_STATE", "error"),
        ]
    )
    func unreadable(text: String, name: String, member: String) throws {
        #expect(try event(text).message == .unreadable(name: name, member: member))
    }

    @Test("every error has a text and an advice for people, without capital and full stop")
    func errors() {
        let all: [ClientError] = [
            .invalidPath(""), .invalidPath("/x"), .notRunning(path: "/x"), .permissionDenied(path: "/x"),
            .unreachable(path: "/x", cause: "c"), .closed, .malformed("m"), .unreadEvents, .cancelled,
            .accessDenied(command: "X"), .badState(command: "X"), .unknownCommand("X"), .refused("r"),
            .unexpectedAnswer("X"),
        ]
        for error in all {
            for words in [error.text, error.advice] {
                #expect(!words.isEmpty && !words.hasSuffix("."))
            }
        }
    }
}
