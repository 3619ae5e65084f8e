// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import BadgedClient

@Suite("Messages of documents", .timeLimit(.minutes(5))) struct DocumentMessageTests {
    private static let result: DocumentResult = {
        var result = DocumentResult(success: true)
        (result.reader, result.verdict) = ("Desk", .suspect)
        result.document = [.init(name: "number", value: "L1"), .init(name: "mrz", value: "A, B")]
        result.portrait = .init(format: "jpeg", width: 2, height: 3, data: [0xFF])
        result.groups = [.init(number: 1, state: "read", length: 1, content: [0x61])]
        result.checks = [
            .init(name: "hashes", result: "failed", reason: "wrongHash", details: ["groups": "1, 2"]),
            .init(
                name: "chip",
                result: "failed",
                reason: nil,
                details: ["methods": "CA passed, AA failed (wrongSignature)"]
            ),
        ]
        return result
    }()

    private static let cases = [
        MessageCase(
            #"{"msg":"ENTER_MRZ","question":3,"passwords":["mrz","can"],"error":"malformed","message":"M","#
                + #""reader":{"name":"Desk","attached":true}}"#,
            DocumentQuestion(
                reader: Reader(name: "Desk"),
                acceptsCAN: true,
                error: "malformed",
                message: "M",
                number: 3
            )
        ),
        MessageCase(
            #"{"msg":"ENTER_CAN","question":4,"passwords":["mrz"],"reader":{"name":"Desk","attached":true}}"#,
            DocumentQuestion(reader: Reader(name: "Desk"), acceptsCAN: false, number: 4)
        ),
        MessageCase(#"{"msg":"DOCUMENT"}"#, DocumentMessage(outcome: nil)),
        MessageCase(
            #"{"msg":"DOCUMENT","success":true,"reader":"Desk","verdict":"suspect","document":{"number":"L1","#
                + #""optional":"","mrz":["A","B"]},"portrait":{"format":"jpeg","width":2,"height":3,"data":"/w=="},"#
                + #""groups":[{"group":1,"state":"read","bytes":1,"data":"YQ=="}],"checks":{"chip":{"result":"failed","#
                + #""methods":[{"method":"CA","result":"passed","reason":null},{"method":"AA","result":"failed","#
                + #""reason":"wrongSignature"}]},"hashes":{"result":"failed","reason":"wrongHash","groups":[1,2]}}}"#,
            DocumentMessage(outcome: result)
        ),
        MessageCase(
            #"{"msg":"DOCUMENT_ANCHORS","folder":"/f","authorities":2,"countries":["UT"],"crls":1,"newest":"2026-11-26"}"#,
            DocumentAnchorReport(
                folder: "/f",
                authorities: 2,
                countries: ["UT"],
                revocationLists: 1,
                newest: "2026-11-26"
            )
        ),
    ]

    @Test("Each message is read as its type, whatever the order of its members", arguments: cases)
    func read(_ message: MessageCase) throws { try message.check() }

    @Test("a question for the CAN of an eID card stays one of eID cards")
    func eid() throws {
        let text = #"{"msg":"ENTER_CAN","question":1,"reader":{"name":"Desk","attached":true}}"#
        #expect(try event(text).message is SecretQuestion)
    }

    @Test("the data of a document belong in no log")
    func secret() throws { #expect(try event(#"{"msg":"DOCUMENT","success":true}"#).tellsSecret) }
}
