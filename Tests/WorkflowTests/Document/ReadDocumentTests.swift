// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Document
import DocumentFeature
import FoundationEssentials
import Host
import ISO7816
import Readers
import ReadersVirtual
import Server
import TestSupport
import Testing
import Text
import VirtualDocument

/// RUN_READ_DOCUMENT over a socket, with documents of Tests/Vectors/documents in a scripted reader.
@Suite("Reading a document", .timeLimit(.minutes(5)))
struct ReadDocumentTests {
    /// 2026-11-25, when the documents were made.
    static let time = 1_795_608_000

    static let catalogue: JSON = {
        let file = testsFolder.appending(path: "Vectors/documents/catalogue.json")
        return (try? Data(contentsOf: file)).flatMap { try? JSON($0) } ?? .null
    }()

    static func blob(_ name: JSON?) -> [UInt8]? {
        name?.string.flatMap { catalogue["blobs"]?[$0]?.string }.flatMap { Base64.standard.decode($0) }
    }

    static func description(_ name: String) throws -> VirtualDocumentDescription {
        let entry = try #require(catalogue["documents"]?.array?.first { $0["name"] == .string(name) })
        var description = try VirtualDocumentDescription(card: entry["card"])
        for file in entry["files"]?.members ?? [] { description.files[file.key] = blob(file.value) }
        return description
    }

    static func anchors() throws -> DocumentAnchors {
        var anchors = DocumentAnchors()
        for name in ["csca-1-rsa", "csca-2-brainpool", "csca-3-pss"] {
            try anchors.trust(try DocumentCertificate(try #require(blob(catalogue["pki"]?["\(name).cer"]))))
        }
        return anchors
    }

    /// A server with the feature, a reader, and a client.
    @Loop private struct Fixture {
        let backend: ScriptedReaders
        let server: TestServer
        let client: TestClient

        init(
            _ name: String,
            permissions: Permissions = .all.union(.documents),
            change: (inout VirtualDocumentDescription) -> Void = { _ in }
        )
            async throws
        {
            var description = try ReadDocumentTests.description(name)
            change(&description)
            let card = try description.makeCard()
            let anchors = try ReadDocumentTests.anchors()
            backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
            server = try await TestServer(
                readers: 0,
                backends: [backend],
                permissions: permissions,
                moreFeatures: {
                    [DocumentFeature($0, anchors: { anchors }, time: { ReadDocumentTests.time })]
                }
            )
            backend.add(ReaderDescription(name: "Desk"))
            await server.ready(["Desk"])
            client = try server.connect()
            _ = await client.exchange()
        }
    }

    private static let mrz =
        #"P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F3504152<<<<<<<<<<<<<<<4"#

    @Test(
        "READER says how a document is opened, and nothing about its holder",
        arguments: [
            ("bac-td3-sha1", [JSON.string("bac")]), ("pace-only-td1", [.string("pace")]),
            ("pace-gm-bac", [.string("pace"), .string("bac")]),
        ]
    )
    @Loop func recognition(name: String, access: [JSON]) async throws {
        let fixture = try await Fixture(name)
        fixture.backend.insert(into: "Desk")
        let reader = await fixture.client.next("READER")
        #expect(reader?["card"] == .object([.init("kind", .string("document")), .init("access", .array(access))]))
    }

    @Test("the document is read with the MRZ, and each check has its result")
    @Loop func mrz() async throws {
        let fixture = try await Fixture("bac-aa-rsa")
        let client = fixture.client
        let start = await client.exchange(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1,2],"raw":true}"#)
        #expect(start == [#"{"msg":"DOCUMENT"}"#, #"{"msg":"INSERT_CARD"}"#])
        fixture.backend.insert(into: "Desk")
        let question = await client.next("ENTER_MRZ")
        #expect(question?["passwords"] == .array([.string("mrz")]))
        let document = await client.ask(#"{"cmd":"SET_MRZ","value":"\#(Self.mrz)"}"#, "DOCUMENT")
        #expect(document?["success"] == .bool(true))
        #expect(document?["verdict"] == .string("genuine"))
        #expect(document?["access"]?["protocol"] == .string("BAC"))
        #expect(document?["document"]?["number"] == .string("L898902C3"))
        #expect(document?["checks"]?["chip"]?["methods"]?.array?.first?["method"] == .string("AA"))
        #expect(document?["portrait"]?["format"] == .string("jpeg"))
        #expect(document?["groups"]?.array?.count == 3)
        #expect(!fixture.server.isLent("Desk"))
    }

    @Test("a wrong value is asked for again, in three fields or as a CAN")
    @Loop func wrongValue() async throws {
        let fixture = try await Fixture("pace-gm-bac")
        let client = fixture.client
        fixture.backend.insert(into: "Desk")
        let question = await client.ask(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1],"portrait":false}"#, "ENTER_MRZ")
        #expect(question?["passwords"] == .array([.string("mrz"), .string("can")]))
        let malformed = await client.ask(#"{"cmd":"SET_MRZ","value":"P<UTO"}"#, "ENTER_MRZ")
        #expect(malformed?["error"]?.string?.contains("machine readable zone") == true)
        let wrong = await client.ask(
            #"{"cmd":"SET_MRZ","number":"X1234567","birth":"1970-01-01","expiry":"300101"}"#,
            "ENTER_MRZ"
        )
        #expect(wrong?["error"] == .string("wrongPassword"))
        let document = await client.ask(
            #"{"cmd":"SET_MRZ","number":"L898902C3","birth":"1974-08-12","expiry":"350415"}"#,
            "DOCUMENT"
        )
        #expect(document?["verdict"] == .string("genuine"))
        #expect(document?["portrait"] == nil)
        #expect(document?["access"]?["protocol"] == .string("PACE"))
    }

    @Test("a fault is in the result, not an error")
    @Loop func suspect() async throws {
        let fixture = try await Fixture("aa-wrong-key")
        fixture.backend.insert(into: "Desk")
        _ = await fixture.client.ask(#"{"cmd":"RUN_READ_DOCUMENT"}"#, "ENTER_MRZ")
        let document = await fixture.client.ask(#"{"cmd":"SET_MRZ","value":"\#(Self.mrz)"}"#, "DOCUMENT")
        #expect(document?["success"] == .bool(true))
        #expect(document?["verdict"] == .string("suspect"))
        #expect(document?["checks"]?["chip"]?["result"] == .string("failed"))
    }

    @Test("CANCEL ends the question, and the reader is free")
    @Loop func cancel() async throws {
        let fixture = try await Fixture("bac-td3-sha1")
        fixture.backend.insert(into: "Desk")
        _ = await fixture.client.ask(#"{"cmd":"RUN_READ_DOCUMENT"}"#, "ENTER_MRZ")
        let end = await fixture.client.ask(#"{"cmd":"CANCEL"}"#, "DOCUMENT")
        #expect(end?["success"] == .bool(false))
        #expect(end?["error"] == .string("User_Cancelled"))
        #expect(!fixture.server.isLent("Desk"))
    }

    @Test("a client without the permission is refused")
    @Loop func permission() async throws {
        let fixture = try await Fixture("bac-td3-sha1", permissions: [.readers, .cards])
        let denied = await fixture.client.ask(#"{"cmd":"RUN_READ_DOCUMENT"}"#, "ACCESS_DENIED")
        #expect(denied?["error"] == .string("RUN_READ_DOCUMENT"))
    }

    @Test("no value of the document is in the log")
    @Loop func log() async throws {
        let fixture = try await Fixture("pace-gm-bac")
        fixture.backend.insert(into: "Desk")
        _ = await fixture.client.ask(#"{"cmd":"RUN_READ_DOCUMENT"}"#, "ENTER_MRZ")
        _ = await fixture.client.ask(#"{"cmd":"SET_MRZ","value":"\#(Self.mrz)"}"#, "DOCUMENT")
        let log = fixture.server.logged.joined(separator: "\n")
        for value in ["L898902C3", "ERIKSSON", "740812", "UTO", "654321"] { #expect(!log.contains(value)) }
    }
}
