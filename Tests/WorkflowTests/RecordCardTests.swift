// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import CountryAuthorities
import DocumentFeature
import Host
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualDocument
import VirtualEID

/// RECORD_CARD: what a card says before any secret, and the same card played again.
@Suite("Recording a card", .timeLimit(.minutes(5)))
@Loop struct RecordCardTests {
    private static let record = #"{"cmd":"RECORD_CARD","name":"Desk"}"#
    private static let recordAll = #"{"cmd":"RECORD_CARD","name":"Desk","unchanged":true}"#

    /// A server with a card in its reader.
    @Loop private final class Fixture {
        let server: TestServer
        let client: TestClient
        let backend: ScriptedReaders
        /// READER of the card.
        let reader: JSON?

        init(_ card: VirtualCard, permissions: Permissions = .all) async throws {
            let anchors = DocumentAnchorFolder("/nowhere/csca", mayBeMissing: true, warn: { _ in })
            backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
            server = try await TestServer(
                readers: 0,
                backends: [backend],
                permissions: permissions,
                moreFeatures: { [DocumentFeature($0, anchors, time: { ReadDocumentTests.time })] }
            )
            backend.add(ReaderDescription(name: "Desk"))
            await server.ready(["Desk"])
            client = try server.connect()
            _ = await client.exchange()
            backend.insert(into: "Desk", answerToReset: card.answerToReset)
            reader = await client.next("READER")
        }
    }

    private static func document(_ name: String) throws -> VirtualCard {
        try ReadDocumentTests.description(name).makeCard()
    }

    /// A document that sends its files to everybody.
    private static func openDocument() throws -> VirtualCard {
        var description = try ReadDocumentTests.description("bac-td3-sha1")
        description.hasBAC = false
        description.pace = []
        return try description.makeCard()
    }

    private static func replayed(_ answer: JSON?) throws -> VirtualCard {
        let text = try #require(answer?["recording"]?.string)
        return try VirtualCard(RecordedCard(CardRecording(text.utf8)))
    }

    private static func cards() throws -> [(String, VirtualCard)] {
        [
            ("eid", try VirtualCard()), ("document", try document("bac-td3-sha1")),
            ("document", try document("pace-only-td1")), ("document", try openDocument()),
        ]
    }

    @Test("a recorded card is recognised as the card was, and is recorded in the same way", arguments: 0...3)
    func replay(index: Int) async throws {
        let (kind, card) = try Self.cards()[index]
        let fixture = try await Fixture(card)
        let profile = try #require(fixture.reader?["card"])
        #expect(profile["kind"]?.string == kind)
        let first = try #require(await fixture.client.ask(Self.record, "CARD_RECORDING"))
        #expect(first["fault"] == nil && first["error"] == nil)
        #expect(first["recording"]?.string?.contains("\nkind \(kind)\n") == true)
        #expect(!fixture.server.isLent("Desk"))
        let again = try await Fixture(try Self.replayed(first))
        #expect(again.reader?["card"] == profile)
        let second = try #require(await again.client.ask(Self.record, "CARD_RECORDING"))
        let statuses = { (json: JSON) in
            (json["recording"]?.string ?? "").split(separator: "\n").filter { $0.hasPrefix("< ") }.map { $0.suffix(4) }
        }
        #expect(statuses(second) == statuses(first))
    }

    @Test("nothing but questions reaches the card", arguments: 0...3)
    func commands(index: Int) async throws {
        let (_, card) = try Self.cards()[index]
        let fixture = try await Fixture(card)
        let before = await card.apdus
        let answer = try #require(await fixture.client.ask(Self.record, "CARD_RECORDING"))
        let recording = try CardRecording(try #require(answer["recording"]?.string).utf8)
        // Every command is in the recording.
        #expect(await card.apdus - before == recording.exchanges.count)
        for exchange in recording.exchanges {
            let command = try #require(CommandAPDU(bytes: exchange.command))
            #expect([0xA4, 0xB0, 0xC0, 0xCA, 0x22].contains(command.ins))
            if command.ins == 0x22 { #expect(command.p1 == 0xC1 && command.p2 == 0xA4) }
        }
        // The tries for the PIN are as before.
        let next = await fixture.client.answer(to: #"{"cmd":"GET_READER","name":"Desk"}"#)
        #expect(next?["card"] == fixture.reader?["card"])
    }

    @Test("a recording has nothing about the holder of a document that everybody can read")
    func holder() async throws {
        let fixture = try await Fixture(try Self.openDocument())
        let answer = try #require(await fixture.client.ask(Self.record, "CARD_RECORDING"))
        let text = try #require(answer["recording"]?.string)
        for value in ["ERIKSSON", "L898902C3", "740812"] { #expect(!text.contains(Hex.encode(value.utf8))) }
        // The first bytes of the machine readable zone say that it is free to read.
        #expect(text.contains("> 00b0810004\n< 615b5f1f9000\n"))
    }

    @Test("a recording of all data, replayed, gives the same DOCUMENT")
    func sameDocument() async throws {
        let zone = #"P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F3504152<<<<<<<<<<<<<<<4"#
        func read(_ client: TestClient) async -> JSON? {
            _ = await client.ask(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1,2],"raw":true}"#, "ENTER_MRZ")
            return await client.ask(#"{"cmd":"SET_MRZ","value":"\#(zone)"}"#, "DOCUMENT")
        }
        let fixture = try await Fixture(try Self.openDocument())
        let answer = try #require(await fixture.client.ask(Self.recordAll, "CARD_RECORDING"))
        let document = try #require(await read(fixture.client))
        #expect(document["success"] == .bool(true))
        let again = try await Fixture(try Self.replayed(answer))
        let replayed = try #require(await read(again.client))
        for member in ["document", "groups", "files", "checks", "verdict", "access", "portrait"] {
            #expect(replayed[member] == document[member], "\(member)")
        }
    }

    @Test(
        "all data need the permissions documents and credentials",
        arguments: [Permissions.all.subtracting(.documents), Permissions.all.subtracting(.credentials)]
    )
    func permissions(permissions: Permissions) async throws {
        let fixture = try await Fixture(try Self.openDocument(), permissions: permissions)
        let refused = await fixture.client.answer(to: Self.recordAll)
        #expect(refused?["error"]?.string?.contains("documents and credentials") == true)
        #expect(await fixture.client.ask(Self.record, "CARD_RECORDING")?["recording"] != nil)
    }

    @Test("a card that another client uses is not disturbed, and the answer says why")
    func busy() async throws {
        let fixture = try await Fixture(try VirtualCard())
        let lease = try await fixture.server.registry.lend("Desk", to: ObjectIdentifier(fixture), called: "phone")
        let answer = try #require(await fixture.client.ask(Self.record, "CARD_RECORDING"))
        #expect(answer["fault"]?.string?.isEmpty == false)
        await lease.release(removingVirtualCard: false)
    }

    private static let recordBoard = #"{"cmd":"RECORD_CARD","name":"Desk","board":true}"#
    nonisolated private static let frames = "badged-frames 1\ndriver pn532_uart\n> 00\nend\n"

    @Test(
        "with board the answer has the frames of the board, or says why there are none",
        arguments: [
            (.success(Array(frames.utf8)), nil), (.success([0x41, 0xFF]), "badged-nfc has sent no recording"),
            (.success([]), "badged-nfc has sent no recording"),
            (.failure(.other("the board does not answer")), "the board does not answer"),
            (.failure(.serviceUnavailable), "the reader is gone"), (.failure(.removed), "the reader is gone"),
        ] as [(Result<[UInt8], CardError>, String?)]
    )
    func board(result: Result<[UInt8], CardError>, fault: String?) async throws {
        let fixture = try await Fixture(try VirtualCard())
        fixture.backend.onRecord(result)
        let answer = try #require(await fixture.client.ask(Self.recordBoard, "CARD_RECORDING"))
        #expect(answer["recording"]?.string == (fault == nil ? Self.frames : ""))
        #expect(answer["fault"]?.string.map { $0.contains(fault ?? "\n") } == fault.map { _ in true }, "\(answer)")
    }

    @Test("a board is not touched while a workflow has its card")
    func busyBoard() async throws {
        let fixture = try await Fixture(try VirtualCard())
        fixture.backend.onRecord(.success(Array(Self.frames.utf8)))
        let lease = try await fixture.server.registry.lend("Desk", to: ObjectIdentifier(fixture), called: "phone")
        let answer = try #require(await fixture.client.ask(Self.recordBoard, "CARD_RECORDING"))
        #expect(answer["recording"] == nil && answer["error"]?.string?.contains("busy") == true, "\(answer)")
        await lease.release(removingVirtualCard: false)
        #expect(await fixture.client.ask(Self.recordBoard, "CARD_RECORDING")?["recording"]?.string == Self.frames)
    }

    @Test("a board is recorded for one client at a time, and its card can be used afterwards")
    func oneRecording() async throws {
        let fixture = try await Fixture(try VirtualCard())
        let (asked, goesOn) = (OneShot<Void>(), OneShot<Void>())
        fixture.backend.onRecord(.success(Array(Self.frames.utf8))) {
            _ = asked.fill(())
            await goesOn.value(whenCancelled: ())
        }
        let recording = Task { await fixture.client.ask(Self.recordBoard, "CARD_RECORDING")?["recording"]?.string }
        await asked.value(whenCancelled: ())
        let second = try fixture.server.connect()
        let refused = try #require(await second.ask(Self.recordBoard, "CARD_RECORDING"))
        #expect(refused["recording"] == nil && refused["error"]?.string?.contains("busy") == true, "\(refused)")
        _ = goesOn.fill(())
        #expect(await recording.value == Self.frames)
        let lease = try await fixture.server.registry.lend("Desk", to: ObjectIdentifier(fixture), called: "phone")
        await lease.release(removingVirtualCard: false)
        second.close()
    }

    @Test("a board is recorded only so often, whoever asks, and its card can be used all the same")
    func oftenRecorded() async throws {
        let fixture = try await Fixture(try VirtualCard())
        fixture.backend.onRecord(.success(Array(Self.frames.utf8)))
        let second = try fixture.server.connect()
        for client in [fixture.client, second, fixture.client] {
            #expect(await client.ask(Self.recordBoard, "CARD_RECORDING")?["recording"]?.string == Self.frames)
        }
        for client in [fixture.client, second] {
            let refused = try #require(await client.ask(Self.recordBoard, "CARD_RECORDING"))
            #expect(refused["recording"] == nil && refused["error"]?.string?.contains("try again later") == true)
        }
        let lease = try await fixture.server.registry.lend("Desk", to: ObjectIdentifier(fixture), called: "phone")
        await lease.release(removingVirtualCard: false)
        second.close()
    }

    @Test("a reader of another driver is no board")
    func noBoard() async throws {
        let server = try await TestServer(readers: 1)
        let client = try server.connect()
        _ = await client.exchange()
        let name = try #require(server.registry.readers.first?.name)
        let answer = await client.ask(#"{"cmd":"RECORD_CARD","name":"\#(name)","board":true}"#, "CARD_RECORDING")
        #expect(answer?["fault"]?.string == BoardRecording.noBoard)
    }

    @Test("an empty reader, an unknown one, and none are refused", arguments: [#""Hall""#, #""Nothing""#, #""""#])
    func refused(name: String) async throws {
        let fixture = try await Fixture(try VirtualCard())
        fixture.backend.add(ReaderDescription(name: "Hall"))
        await fixture.server.ready(["Desk", "Hall"])
        let answer = await fixture.client.answer(to: #"{"cmd":"RECORD_CARD","name":\#(name)}"#)
        #expect(answer?["msg"]?.string == "CARD_RECORDING" && answer?["error"] != nil)
    }
}
