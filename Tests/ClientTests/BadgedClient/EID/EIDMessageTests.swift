// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import BadgedClient

@Suite("Messages of eID cards", .timeLimit(.minutes(5))) struct EIDMessageTests {
    private static let reader =
        #""reader":{"name":"R","attached":true,"insertable":true,"keypad":true,"busy":true,"#
        + #""card":{"kind":"eid","retryCounter":1,"deactivated":true,"inoperative":true}}"#
    private static let eid = Reader(
        name: "R",
        isInsertable: true,
        hasKeypad: true,
        isBusy: true,
        card: Card(EIDCard(retryCounter: 1, isDeactivated: true, isInoperative: true))
    )

    private static let cases = [
        MessageCase(#"{"msg":"CHANGE_PIN"}"#, ChangePINMessage(outcome: nil)),
        MessageCase(#"{"msg":"CHANGE_PIN","success":true}"#, ChangePINMessage(outcome: .init(success: true))),
        MessageCase(
            #"{"msg":"CHANGE_PIN","success":false,"reason":"Card_Removed"}"#,
            ChangePINMessage(outcome: .init(success: false, reason: "Card_Removed"))
        ),
        MessageCase(
            #"{"msg":"CHANGE_PIN","error":"Invalid name"}"#,
            Refusal(name: "CHANGE_PIN", error: "Invalid name")
        ),
        MessageCase(
            #"{"msg":"CHANGE_PIN","success":"yes"}"#,
            UnreadableMessage(name: "CHANGE_PIN", member: "success")
        ),
        MessageCase(#"{"msg":"AUTH"}"#, AuthenticationMessage(outcome: nil)),
        MessageCase(#"{"msg":"AUTH","error":"bad URL"}"#, Refusal(name: "AUTH", error: "bad URL")),
        MessageCase(
            #"{"msg":"AUTH","result":{"major":"a#ok"},"url":"https://u"}"#,
            AuthenticationMessage(outcome: .init(major: "a#ok", url: "https://u"))
        ),
        MessageCase(
            #"{"msg":"AUTH","result":{"major":"a#error","minor":"b","message":"c","description":"d","reason":"e"}}"#,
            AuthenticationMessage(
                outcome: .init(major: "a#error", minor: "b", message: "c", description: "d", reason: "e")
            )
        ),
        MessageCase(#"{"msg":"AUTH","url":"https://u"}"#, UnreadableMessage(name: "AUTH", member: "result")),
        MessageCase(
            #"{"msg":"ACCESS_RIGHTS","chat":{"required":["A"],"optional":["B","C"],"effective":["A","C"]},"#
                + #""aux":{"ageVerificationDate":"2008-11-22","requiredAge":"18","validityDate":"2026-11-22","#
                + #""communityId":"0276"},"transactionInfo":"t"}"#,
            AccessRights(
                required: ["A"],
                optional: ["B", "C"],
                effective: ["A", "C"],
                transactionInfo: "t",
                requiredAge: 18,
                ageVerificationDate: "2008-11-22",
                validityDate: "2026-11-22",
                communityID: "0276"
            )
        ),
        MessageCase(
            #"{"msg":"ACCESS_RIGHTS","error":"E","chat":{"required":[],"optional":[],"effective":[]}}"#,
            Refusal(name: "ACCESS_RIGHTS", error: "E")
        ),
        MessageCase(
            #"{"msg":"ACCESS_RIGHTS","chat":{"required":[]}}"#,
            UnreadableMessage(name: "ACCESS_RIGHTS", member: "chat")
        ),
        MessageCase(
            #"{"msg":"CERTIFICATE","description":{"issuerName":"1","issuerUrl":"2","subjectName":"3","#
                + #""subjectUrl":"4","termsOfUsage":"5","purpose":"6"},"#
                + #""validity":{"effectiveDate":"7","expirationDate":"8"}}"#,
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
        ),
        MessageCase(
            #"{"msg":"ENTER_PIN","question":7,\#(reader)}"#,
            SecretQuestion(kind: .pin, reader: eid, number: 7)
        ),
        MessageCase(
            #"{"msg":"ENTER_CAN","question":7,"error":"E",\#(reader)}"#,
            SecretQuestion(kind: .can, reader: eid, error: "E", number: 7)
        ),
        MessageCase(
            #"{"msg":"ENTER_PUK","question":7,"error":"E","unanswered":true,\#(reader)}"#,
            SecretQuestion(kind: .puk, reader: eid, error: "E", isUnanswered: true, number: 7)
        ),
        MessageCase(
            #"{"msg":"ENTER_NEW_PIN","reader":{"name":"S","attached":true,"card":{}}}"#,
            SecretQuestion(kind: .newPIN, reader: Reader(name: "S", card: Card()))
        ),
        MessageCase(
            #"{"msg":"ENTER_PUK","reader":{"name":"gone","attached":false}}"#,
            SecretQuestion(kind: .puk, reader: Reader(name: "gone", isAttached: false))
        ),
        MessageCase(#"{"msg":"ENTER_PIN"}"#, UnreadableMessage(name: "ENTER_PIN", member: "reader")),
        MessageCase(
            #"{"msg":"ENTER_PUK","reader":{"attached":true}}"#,
            UnreadableMessage(name: "ENTER_PUK", member: "reader")
        ),
    ]

    @Test("Each message is read as its type, whatever the order of its members", arguments: cases)
    func read(_ message: MessageCase) throws { try message.check() }

    @Test("A card of another kind is no eID card, a card without kind is known by its retry counter")
    func cardKinds() {
        #expect(Card().eid == nil)
        #expect(Card(members: ["kind": .string("key"), "retryCounter": .number("3")]).eid == nil)
        #expect(Card(members: ["retryCounter": .number("3")]).eid == EIDCard(retryCounter: 3))
        #expect(Card(EIDCard(retryCounter: 2)).eid == EIDCard(retryCounter: 2))
    }
}
