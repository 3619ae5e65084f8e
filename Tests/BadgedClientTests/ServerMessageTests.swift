// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text
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
            (
                .accessRights(
                    AccessRightsState(
                        required: ["A"],
                        optional: ["B", "C"],
                        effective: ["A", "C"],
                        transactionInfo: "t",
                        auxiliary: .init(requiredAge: 18, communityID: "0276")
                    ),
                    error: "E"
                ),
                .accessRights(
                    AccessRights(
                        required: ["A"],
                        optional: ["B", "C"],
                        effective: ["A", "C"],
                        transactionInfo: "t",
                        requiredAge: 18,
                        communityID: "0276"
                    ),
                    error: "E"
                )
            ),
            (.authStarted, .authStarted),
            (.authRefused(error: "Invalid tcTokenURL"), .authRefused(error: "Invalid tcTokenURL")),
            (.userInterface(active: true, error: nil), .userInterface(active: true, error: nil)),
            (.userInterface(active: false, error: "E"), .userInterface(active: false, error: "E")),
            (.showUI(module: "M"), .showUI(module: "M")),
            (.activation(url: nil, error: "E"), .unknown(name: "ACTIVATION")),
            (
                .authEnded(AuthResult(major: "a#ok", url: "https://u")),
                .authEnded(AuthenticationResult(major: "a#ok", url: "https://u"))
            ),
            (
                .authEnded(AuthResult(major: "a#error", minor: "b", message: "c", description: "d", reason: "e")),
                .authEnded(
                    AuthenticationResult(major: "a#error", minor: "b", message: "c", description: "d", reason: "e")
                )
            ),
            (
                .certificate(
                    CertificateState(
                        issuerName: "1",
                        issuerURL: "2",
                        subjectName: "3",
                        subjectURL: "4",
                        termsOfUsage: "5",
                        purpose: "6",
                        effectiveDate: "7",
                        expirationDate: "8"
                    )
                ),
                .certificate(
                    ServiceCertificate(
                        subjectName: "3",
                        subjectURL: "4",
                        issuerName: "1",
                        issuerURL: "2",
                        termsOfUsage: "5",
                        purpose: "6",
                        effectiveDate: "7",
                        expirationDate: "8"
                    )
                )
            ),
            (.badState(command: "X"), .badState(command: "X")),
            (.changePINStarted, .changePINStarted),
            (.changePINRefused(error: "Invalid name"), .changePINRefused(error: "Invalid name")),
            (.changePINEnded(success: true, reason: nil), .changePINEnded(success: true, reason: nil)),
            (
                .changePINEnded(success: false, reason: "Card_Removed"),
                .changePINEnded(success: false, reason: "Card_Removed")
            ),
            (
                .enter(.enterPIN, error: nil, question: 7, reader: eid),
                .enter(SecretQuestion(kind: .pin, reader: eidRead, number: 7))
            ),
            (
                .enter(.enterCAN, error: "E", question: 7, reader: eid),
                .enter(SecretQuestion(kind: .can, reader: eidRead, error: "E", number: 7))
            ),
            (
                .enter(.enterNewPIN, error: nil, question: 7, reader: plain),
                .enter(SecretQuestion(kind: .newPIN, reader: Reader(name: "S", card: .unknown), number: 7))
            ),
            (
                .enter(.enterPUK, error: nil, question: 7, reader: ReaderState(name: "gone", attached: nil)),
                .enter(SecretQuestion(kind: .puk, reader: Reader(name: "gone", isAttached: false), number: 7))
            ),
            (
                .health([
                    .init(name: "pcscd", ok: false, advice: "start it"), .init(name: "v", ok: true, advice: nil),
                    .init(name: "bluetoothScan", ok: false, advice: "move it", errorAgo: 1500),
                ]),
                .health([
                    HealthCheck(name: "pcscd", isOK: false, advice: "start it"), HealthCheck(name: "v", isOK: true),
                    HealthCheck(
                        name: "bluetoothScan",
                        isOK: false,
                        advice: "move it",
                        errorAge: .milliseconds(1500)
                    ),
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
            (.door(.scan(ScanState())), .scan(ScanStatus(isWanted: false, isListening: false))),
            (.door(.lost(id: "x")), .doorReaderLost(id: "x")), (.door(.list([])), .doorReaderList([])),
            (.door(.closest(nil, reason: "none")), .closestDoorReader(nil, reason: "none")),
            (.door(.refused(.closest, error: "no")), .doorReaderRefused(error: "no")),
            (
                .door(
                    .reader(
                        DoorReaderState(
                            id: "x",
                            profile: "pkoc",
                            address: "00:00:00:00:00:01",
                            addressType: "public",
                            strength: .init(age: 0, average: -58, last: -61, level: -60.26, list: [])
                        )
                    )
                ), .doorReader(DoorReader(id: "x", profile: "pkoc", level: -60.3, lastRSSI: -61))
            ),
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
        let text = #"{"later":[1,{"a":"\u00e4"}],"msg":"ELEVATOR","name":"x"}"#
        let unknown = try event(text)
        #expect(unknown.message == .unknown(name: "ELEVATOR"))
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
