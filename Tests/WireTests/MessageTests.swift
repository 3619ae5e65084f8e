// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text
import Wire

/// One of each kind of message, and what it is on the wire at level 3.
let everyMessage: [(Message, String)] = {
    let eid = CardState.eid(retryCounter: 2, deactivated: false, inoperative: true)
    let reader = ReaderState(
        name: "R \"1\"",
        attached: .init(insertable: true, keypad: false, card: eid, busy: true)
    )
    let empty = ReaderState(name: "S", attached: .init(insertable: false, keypad: true, card: .none, busy: false))
    let other = ReaderState(name: "T", attached: .init(insertable: false, keypad: false, card: .unknown, busy: false))
    let readerText =
        #""attached":true,"busy":true,"card":{"deactivated":false,"inoperative":true,"retryCounter":2},"#
        + #""insertable":true,"keypad":false"#
    return [
        (.accessDenied(command: "SET_PIN"), #"{"error":"SET_PIN","msg":"ACCESS_DENIED"}"#),
        (
            .apiLevel(current: .three, withAvailable: true, error: nil),
            #"{"available":[1,2,3],"current":3,"msg":"API_LEVEL"}"#
        ),
        (
            .apiLevel(current: .one, withAvailable: false, error: "Unknown level"),
            #"{"current":1,"error":"Unknown level","msg":"API_LEVEL"}"#
        ),
        (
            .accessRights(
                AccessRightsState(
                    required: ["FamilyName"],
                    optional: [],
                    effective: ["FamilyName"],
                    transactionInfo: nil,
                    auxiliary: .init()
                ),
                error: nil
            ),
            #"{"chat":{"effective":["FamilyName"],"optional":[],"required":["FamilyName"]},"msg":"ACCESS_RIGHTS"}"#
        ),
        (
            .accessRights(
                AccessRightsState(
                    required: [],
                    optional: ["AgeVerification"],
                    effective: [],
                    transactionInfo: "a \"deal\"",
                    auxiliary: .init(
                        ageVerificationDate: "2008-11-21",
                        requiredAge: 18,
                        validityDate: "2026-11-21",
                        communityID: "027605"
                    )
                ),
                error: "Invalid 'chat' data"
            ),
            #"{"aux":{"ageVerificationDate":"2008-11-21","communityId":"027605","requiredAge":"18","#
                + #""validityDate":"2026-11-21"},"chat":{"effective":[],"optional":["AgeVerification"],"required":[]},"#
                + #""error":"Invalid 'chat' data","msg":"ACCESS_RIGHTS","transactionInfo":"a \"deal\""}"#
        ),
        (.authStarted, #"{"msg":"AUTH"}"#),
        (.authRefused(error: "Invalid tcTokenURL"), #"{"error":"Invalid tcTokenURL","msg":"AUTH"}"#),
        (.activationAccepted, #"{"accepted":true,"msg":"ACTIVATION"}"#),
        (.activation(url: "https://a.example", error: nil), #"{"msg":"ACTIVATION","url":"https://a.example"}"#),
        (.activation(url: nil, error: "Busy"), #"{"error":"Busy","msg":"ACTIVATION"}"#),
        (.showUI(module: "M"), #"{"module":"M","msg":"SHOW_UI"}"#),
        (.userInterface(active: true, error: nil), #"{"active":true,"msg":"USER_INTERFACE"}"#),
        (
            .authEnded(AuthResult(major: "m#ok", url: "https://a/?x=1")),
            #"{"msg":"AUTH","result":{"major":"m#ok"},"url":"https://a/?x=1"}"#
        ),
        (
            .authEnded(
                AuthResult(major: "m#error", minor: "n#x", message: "a", description: "b", reason: "Card_Removed")
            ),
            #"{"msg":"AUTH","result":{"description":"b","language":"en","major":"m#error","message":"a","#
                + #""minor":"n#x","reason":"Card_Removed"}}"#
        ),
        (
            .certificate(
                CertificateState(
                    issuerName: "i",
                    issuerURL: "https://i",
                    subjectName: "s",
                    subjectURL: "https://s",
                    termsOfUsage: "t\nu",
                    purpose: "",
                    effectiveDate: "2026-11-01",
                    expirationDate: "2026-12-01"
                )
            ),
            #"{"description":{"issuerName":"i","issuerUrl":"https://i","purpose":"","subjectName":"s","#
                + #""subjectUrl":"https://s","termsOfUsage":"t\nu"},"msg":"CERTIFICATE","#
                + #""validity":{"effectiveDate":"2026-11-01","expirationDate":"2026-12-01"}}"#
        ),
        (.badState(command: "SET_PIN"), #"{"error":"SET_PIN","msg":"BAD_STATE"}"#),
        (.changePINStarted, #"{"msg":"CHANGE_PIN"}"#),
        (.changePINRefused(error: "Invalid name"), #"{"error":"Invalid name","msg":"CHANGE_PIN"}"#),
        (.changePINEnded(success: true, reason: nil), #"{"msg":"CHANGE_PIN","success":true}"#),
        (
            .changePINEnded(success: false, reason: "Card_Removed"),
            #"{"msg":"CHANGE_PIN","reason":"Card_Removed","success":false}"#
        ),
        (
            .enter(.enterPIN, error: nil, question: 7, reader: reader),
            "{\"msg\":\"ENTER_PIN\",\"question\":7,\"reader\":{\(readerText),\"name\":\"R \\\"1\\\"\"}}"
        ),
        (
            .enter(.enterCAN, error: "You must provide 6 digits", question: 7, reader: empty),
            #"{"error":"You must provide 6 digits","msg":"ENTER_CAN","question":7,"reader":{"attached":true,"card":null,"#
                + #""insertable":false,"keypad":true,"name":"S"}}"#
        ),
        (
            .enter(.enterNewPIN, error: nil, question: 7, reader: ReaderState(name: "U", attached: nil)),
            #"{"msg":"ENTER_NEW_PIN","question":7,"reader":{"attached":false,"name":"U"}}"#
        ),
        (
            .enter(.enterPUK, error: nil, question: 7, reader: other),
            #"{"msg":"ENTER_PUK","question":7,"reader":{"attached":true,"card":{},"insertable":false,"keypad":false,"name":"T"}}"#
        ),
        (
            .health([
                .init(name: "pcscd", ok: false, advice: "start it"), .init(name: "virtual", ok: true, advice: nil),
            ]),
            #"{"checks":[{"advice":"start it","name":"pcscd","ok":false},{"name":"virtual","ok":true}],"#
                + #""msg":"HEALTH"}"#
        ),
        (
            .info(ServerInfo(version: "1.2.3", drivers: ["pcsc", "virtual"], scanners: ["bluez"])),
            #"{"AusweisApp":"UNKNOWN","VersionInfo":{"Implementation-Title":"badged","#
                + #""Implementation-Vendor":"badged developers","Implementation-Version":"1.2.3","Name":"badged","#
                + #""Specification-Title":"TR-03124-1","#
                + #""Specification-Vendor":"Federal Office for Information Security","#
                + #""Specification-Version":"1.4"},"badged":{"drivers":["pcsc","virtual"],"protocol":1,"#
                + #""scanners":["bluez"]},"msg":"INFO"}"#
        ),
        (.insertCard(error: nil, reader: nil), #"{"msg":"INSERT_CARD"}"#),
        (
            .insertCard(error: "The PIN is deactivated", reader: "R"),
            #"{"error":"The PIN is deactivated","msg":"INSERT_CARD","reader":"R"}"#
        ),
        (.internalError("Unexpected condition"), #"{"error":"Unexpected condition","msg":"INTERNAL_ERROR"}"#),
        (.invalid("Command cannot be undefined"), #"{"error":"Command cannot be undefined","msg":"INVALID"}"#),
        (.pause(cause: "BadCardPosition"), #"{"cause":"BadCardPosition","msg":"PAUSE"}"#),
        (.reader(reader), "{\(readerText),\"msg\":\"READER\",\"name\":\"R \\\"1\\\"\"}"),
        (
            .reader(ReaderState(name: "gone", attached: nil)),
            #"{"attached":false,"msg":"READER","name":"gone"}"#
        ),
        (.readerRefused(error: "Invalid name"), #"{"error":"Invalid name","msg":"READER"}"#),
        (.readerList([]), #"{"msg":"READER_LIST","readers":[]}"#),
        (
            .readerList([empty, other]),
            #"{"msg":"READER_LIST","readers":[{"attached":true,"card":null,"insertable":false,"keypad":true,"#
                + #""name":"S"},{"attached":true,"card":{},"insertable":false,"keypad":false,"name":"T"}]}"#
        ),
        (
            .status(workflow: .changePIN, progress: 20, state: .enterPIN),
            #"{"msg":"STATUS","progress":20,"state":"ENTER_PIN","workflow":"CHANGE_PIN"}"#
        ),
        (
            .status(workflow: nil, progress: nil, state: nil),
            #"{"msg":"STATUS","progress":null,"state":null,"workflow":null}"#
        ),
        (.unknownCommand("NO_SUCH"), #"{"error":"NO_SUCH","msg":"UNKNOWN_COMMAND"}"#),
    ]
}()

private func text(_ message: Message, _ level: APILevel, request: String? = nil) -> String {
    var writer = JSONWriter()
    if let request {
        Array(request.utf8).withUnsafeBytes { message.write(to: &writer, level: level, request: $0) }
    } else {
        message.write(to: &writer, level: level)
    }
    return String(decoding: writer.bytes, as: UTF8.self)
}

private func isSorted(_ json: JSON) -> Bool {
    switch json {
    case .object(let members):
        let keys = members.map(\.key)
        return keys.allSatisfy { key in keys.count { $0 == key } == 1 } && keys == keys.sorted()
            && members.allSatisfy { isSorted($0.value) }
    case .array(let items): return items.allSatisfy(isSorted)
    case .null, .bool, .number, .string: return true
    }
}

@Suite("Messages") struct MessageTests {
    @Test("every kind of message has its members", arguments: everyMessage.indices)
    func texts(index: Int) {
        let (message, expected) = everyMessage[index]
        #expect(text(message, .three) == expected)
    }

    @Test("keys are sorted, at each level, with and without a request", arguments: everyMessage.indices)
    func sorted(index: Int) throws {
        let message = everyMessage[index].0
        for level in APILevel.allCases {
            for request in [nil, "17"] {
                let json = try JSON(text(message, level, request: request).utf8)
                #expect(isSorted(json), "\(json)")
            }
        }
    }

    @Test("the request stands in every kind of message as the client wrote it", arguments: everyMessage.indices)
    func request(index: Int) throws {
        for request in ["17", "1.50", #"{ "b":1, "a":"\u0041" }"#, "null"] {
            let written = text(everyMessage[index].0, .three, request: request)
            #expect(written.contains("\"request\":\(request)"))
            #expect(try JSON(written.utf8)["request"] != nil)
        }
    }

    @Test("at level 1 the list is called reader, and below level 3 a card that is no eID card is not seen")
    func levels() {
        let other = ReaderState(
            name: "T",
            attached: .init(insertable: false, keypad: false, card: .unknown, busy: false)
        )
        let noCard = #"{"attached":true,"card":null,"insertable":false,"keypad":false,"name":"T"}"#
        #expect(text(.readerList([other]), .one) == "{\"msg\":\"READER_LIST\",\"reader\":[\(noCard)]}")
        #expect(text(.readerList([other]), .two) == "{\"msg\":\"READER_LIST\",\"readers\":[\(noCard)]}")
        let message = #"{"attached":true,"card":null,"insertable":false,"keypad":false,"msg":"READER","name":"T"}"#
        #expect(text(.reader(other), .one) == message)
        #expect(text(.reader(other), .two) == message)
        #expect(
            text(.enter(.enterPIN, error: nil, question: 7, reader: other), .two)
                == "{\"msg\":\"ENTER_PIN\",\"question\":7,\"reader\":\(noCard)}"
        )
    }

    @Test("messages written one after the other into one writer are separate when it is emptied between them")
    func reuse() {
        var writer = JSONWriter()
        Message.changePINStarted.write(to: &writer, level: .three)
        writer.removeAll()
        Message.insertCard(error: nil, reader: nil).write(to: &writer, level: .three)
        #expect(String(decoding: writer.bytes, as: UTF8.self) == #"{"msg":"INSERT_CARD"}"#)
    }
}
