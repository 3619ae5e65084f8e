// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import CountryAuthorities
import Document
import DocumentFeature
import Foundation
import Host
import ISO7816
import Readers
import ReadersVirtual
import Server
import Synchronization
import TestSupport
import Testing
import Text
import VirtualDocument
import VirtualEID

/// The zone of most documents of the catalogue, as JSON.
let zoneLines =
    #"P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F3504152<<<<<<<<<<<<<<<4"#

/// RUN_READ_DOCUMENT over a socket, with documents of Tests/Vectors/documents in a scripted reader.
@Suite("Reading a document", .timeLimit(.minutes(5)))
@Loop struct ReadDocumentTests {
    private let fixture: Fixture

    init() async throws { fixture = try await Fixture("pace-gm-bac") }

    /// 2026-11-25, when the documents were made.
    nonisolated static let time = 1_795_608_000

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

    /// Writes certificates of the catalogue into a folder, as the administrator does.
    static func folder(_ names: [String] = ["csca-1-rsa", "csca-2-brainpool", "csca-3-pss"]) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        for name in names {
            try folder.write("\(name).cer", try #require(blob(catalogue["pki"]?["\(name).cer"])))
        }
        return folder
    }

    /// What the test lets happen to the commands of a reading.
    final class Script: Sendable {
        private let state = Mutex<(@Sendable (CommandAPDU) async throws(CardError) -> Void)?>(nil)
        private let sent = Mutex<[CommandAPDU]>([])
        private let spoiled = Mutex<(@Sendable (ResponseAPDU) throws(CardError) -> ResponseAPDU)?>(nil)

        /// The commands that were sent.
        var commands: [CommandAPDU] { sent.withLock { $0 } }

        func before(_ body: (@Sendable (CommandAPDU) async throws(CardError) -> Void)?) { state.withLock { $0 = body } }

        func run(_ command: CommandAPDU) async throws(CardError) {
            sent.withLock { $0.append(command) }
            try await state.withLock { $0 }?(command)
        }

        /// Replaces the answer to the command with this number, counted from 0.
        func spoil(at number: Int, _ body: @escaping @Sendable (ResponseAPDU) throws(CardError) -> ResponseAPDU) {
            let count = Mutex(0)
            spoiled.withLock {
                $0 = { answer throws(CardError) in
                    let isNow = count.withLock { count in
                        count += 1
                        return count == number + 1
                    }
                    return isNow ? try body(answer) : answer
                }
            }
        }

        func answer(_ answer: ResponseAPDU) throws(CardError) -> ResponseAPDU {
            try spoiled.withLock { $0 }?(answer) ?? answer
        }

        /// Runs a body at the command with this number, counted from 0.
        private func at(_ number: Int, _ body: @escaping @Sendable () async throws(CardError) -> Void) {
            let count = Mutex(0)
            before { _ throws(CardError) in
                let isNow = count.withLock { count in
                    count += 1
                    return count == number + 1
                }
                if isNow { try await body() }
            }
        }

        /// Lets the card leave the reader at a command.
        func leave(_ backend: ScriptedReaders, at number: Int) {
            at(number) { () throws(CardError) in
                backend.withdraw(from: "Desk")
                throw .removed
            }
        }

        /// Lets a command wait.
        /// - Returns: what yields when the card has the command, and what lets the card answer.
        func hold(at number: Int) -> (reached: AsyncStream<Void>, release: AsyncStream<Void>.Continuation) {
            let (reached, waiter) = AsyncStream<Void>.makeStream()
            let (goesOn, release) = AsyncStream<Void>.makeStream()
            at(number) { () throws(CardError) in
                waiter.yield()
                // A card does not know that its command is no longer wanted.
                await Task { for await _ in goesOn { break } }.value
            }
            return (reached, release)
        }
    }

    /// A server with the feature, a reader, and a client.
    @Loop struct Fixture {
        let backend: ScriptedReaders
        let server: TestServer
        let client: TestClient
        let script = Script()
        let clock = TestTime()
        let folder: TemporaryFolder

        init(
            _ name: String,
            permissions: Permissions = .all,
            authorities: [String] = ["csca-1-rsa", "csca-2-brainpool", "csca-3-pss"],
            requiresRevocationList: Bool = false,
            change: (inout VirtualDocumentDescription) -> Void = { _ in }
        )
            async throws
        {
            var description = try ReadDocumentTests.description(name)
            change(&description)
            let card = try description.makeCard()
            folder = try ReadDocumentTests.folder(authorities)
            let anchors = DocumentAnchorFolder(
                folder.path,
                requiresRevocationList: requiresRevocationList,
                warn: { _ in }
            )
            let (script, clock) = (script, clock)
            clock.advance(ReadDocumentTests.time - clock.now)
            // A slow machine would make the position of a card bad at its third loss.
            let moment = StandingClock()
            backend = ScriptedReaders { _ throws(CardError) in
                ScriptedConnection { command throws(CardError) in
                    try await script.run(command)
                    return try script.answer(try await card.answer(command))
                } disconnect: { reset in
                    if reset { await card.reset() }
                }
            }
            server = try await TestServer(
                readers: 0,
                backends: [backend],
                permissions: permissions,
                moreFeatures: {
                    [DocumentFeature($0, anchors, time: { clock.now }, now: { moment.now })]
                }
            )
            backend.add(ReaderDescription(name: "Desk"))
            await server.ready(["Desk"])
            client = try server.connect()
            _ = await client.exchange()
        }

        /// Inserts the document, and begins a reading up to the question for the MRZ.
        func begin(groups: [Int]? = nil) async {
            backend.insert(into: "Desk")
            let members = groups.map { #","groups":\#($0)"# } ?? ""
            _ = await client.ask(#"{"cmd":"RUN_READ_DOCUMENT"\#(members)}"#, "ENTER_MRZ")
        }

        /// Inserts the document, and reads it with the MRZ.
        func read() async -> JSON? {
            await begin()
            return await client.ask(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#, "DOCUMENT")
        }

        /// Reads the document again and again, each time with one more answer before the one that is disturbed.
        func disturbEachAnswer(_ disturbance: Disturbance) async {
            var number = 0
            var isOver = false
            while !isOver {
                backend.insert(into: "Desk")
                await client.send(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1]}"#)
                _ = await client.next("ENTER_MRZ")
                script.spoil(at: number) { answer throws(CardError) in try disturbance.spoil(answer) }
                let before = script.commands.count
                await client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
                var message = await client.next("ENTER_MRZ", "DOCUMENT")
                // A chip may say with the same status word that the value is wrong.
                for _ in 0..<2 where message?["msg"] == .string("ENTER_MRZ") {
                    message = await client.ask(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#, "ENTER_MRZ", "DOCUMENT")
                }
                #expect(message?["verdict"] == .string("genuine"), "command \(number): \(message ?? .null)")
                isOver = script.commands.count - before <= number
                number += 1
                backend.withdraw(from: "Desk")
            }
            #expect(number > 10)
        }
    }

    @Test(
        "READER says how a document is opened, and nothing about its holder",
        arguments: [
            ("bac-td3-sha1", [JSON.string("bac")]), ("pace-only-td1", [.string("pace")]),
            ("pace-gm-bac", [.string("pace"), .string("bac")]),
        ]
    )
    func recognition(name: String, access: [JSON]) async throws {
        let fixture = try await Fixture(name)
        fixture.backend.insert(into: "Desk")
        let reader = await fixture.client.next("READER")
        #expect(reader?["card"] == .object([.init("kind", .string("document")), .init("access", .array(access))]))
    }

    @Test("the document is read with the MRZ, and each check has its result")
    func mrz() async throws {
        let fixture = try await Fixture("bac-aa-rsa")
        let client = fixture.client
        let start = await client.exchange(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1,2],"raw":true}"#)
        #expect(start == [#"{"msg":"DOCUMENT"}"#, #"{"msg":"INSERT_CARD"}"#])
        fixture.backend.insert(into: "Desk")
        let question = await client.next("ENTER_MRZ")
        #expect(question?["passwords"] == .array([.string("mrz")]))
        let document = await client.ask(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#, "DOCUMENT")
        #expect(document?["success"] == .bool(true))
        #expect(document?["verdict"] == .string("genuine"))
        #expect(document?["access"]?["protocol"] == .string("BAC"))
        #expect(document?["document"]?["number"] == .string("L898902C3"))
        #expect(document?["document"]?["birth"] == .string("1974-08-12"))
        #expect(document?["document"]?["expiry"] == .string("2035-04-15"))
        #expect(document?["checks"]?["chip"]?["methods"]?.array?.first?["method"] == .string("AA"))
        #expect(document?["portrait"]?["format"] == .string("jpeg"))
        #expect(document?["groups"]?.array?.count == 3)
        #expect(!fixture.server.isLent("Desk"))
    }

    @Test("a wrong value is asked for again, in three fields or as a CAN")
    func wrongValue() async throws {
        let client = fixture.client
        fixture.backend.insert(into: "Desk")
        let question = await client.ask(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1],"portrait":false}"#, "ENTER_MRZ")
        #expect(question?["passwords"] == .array([.string("mrz"), .string("can")]))
        let malformed = await client.ask(#"{"cmd":"SET_MRZ","value":"P<UTO"}"#, "ENTER_MRZ")
        #expect(malformed?["error"] == .string("malformed"))
        #expect(malformed?["message"]?.string?.contains("5 characters") == true)
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
    func suspect() async throws {
        let fixture = try await Fixture("aa-wrong-key")
        let document = await fixture.read()
        #expect(document?["success"] == .bool(true))
        #expect(document?["verdict"] == .string("suspect"))
        #expect(document?["checks"]?["chip"]?["result"] == .string("failed"))
    }

    @Test("CANCEL ends the question, and the reader is free")
    func cancel() async throws {
        let fixture = try await Fixture("bac-td3-sha1")
        await fixture.begin()
        let end = await fixture.client.ask(#"{"cmd":"CANCEL"}"#, "DOCUMENT")
        #expect(end?["success"] == .bool(false))
        #expect(end?["error"] == .string("User_Cancelled"))
        await fixture.server.released("Desk")
    }

    @Test("a client without the permission is refused")
    func permission() async throws {
        let fixture = try await Fixture("bac-td3-sha1", permissions: [.readers, .cards])
        let denied = await fixture.client.ask(#"{"cmd":"RUN_READ_DOCUMENT"}"#, "ACCESS_DENIED")
        #expect(denied?["error"] == .string("RUN_READ_DOCUMENT"))
    }

    @Test("no value of the document is in the log")
    func log() async throws {
        _ = await fixture.read()
        let log = fixture.server.logged.joined(separator: "\n")
        for value in ["L898902C3", "ERIKSSON", "740812", "UTO", "654321"] { #expect(!log.contains(value)) }
    }

    // MARK: Values

    @Test("a wrong CAN is asked for with ENTER_CAN, and the MRZ answers it, too")
    func wrongCAN() async throws {
        let fixture = try await Fixture("pace-only-td1")
        let client = fixture.client
        await fixture.begin(groups: [1])
        let short = await client.ask(#"{"cmd":"SET_CAN","value":"12345"}"#, "ENTER_MRZ")
        #expect(short?["error"] == .string("malformed"))
        let wrong = await client.ask(#"{"cmd":"SET_CAN","value":"111111"}"#, "ENTER_CAN")
        #expect(wrong?["error"] == .string("wrongPassword"))
        #expect(wrong?["passwords"] == .array([.string("mrz"), .string("can")]))
        let again = await client.ask(#"{"cmd":"SET_CAN","value":"222222"}"#, "ENTER_CAN")
        #expect(again?["error"] == .string("wrongPassword"))
        let document = await client.ask(#"{"cmd":"SET_CAN","value":"654321"}"#, "DOCUMENT")
        #expect(document?["access"]?["password"] == .string("CAN"))
        #expect(document?["verdict"] == .string("genuine"))
    }

    @Test("a typing error that a check digit shows does not reach the chip")
    func typingError() async throws {
        let fixture = try await Fixture("bac-td3-sha1")
        await fixture.begin(groups: [1])
        let before = fixture.script.commands.count
        let wrong = zoneLines.replacingOccurrences(of: "7408122", with: "7408222")
        let question = await fixture.client.ask(#"{"cmd":"SET_MRZ","value":"\#(wrong)"}"#, "ENTER_MRZ")
        #expect(question?["error"] == .string("malformed"))
        #expect(question?["message"]?.string?.contains("date of birth") == true)
        #expect(fixture.script.commands.count == before)
    }

    @Test(
        "a value in the command is used without a question, and a wrong one is the end",
        arguments: [
            (#""can":"654321""#, nil), (#""can":"111111""#, "WrongPassword"),
            (#""mrz":"\#(zoneLines)","allowBAC":"always""#, nil),
            (#""can":"654321","allowBAC":"always""#, "AccessUnsupported"),
        ]
    )
    func valueAtOnce(value: String, error: String?) async throws {
        fixture.backend.insert(into: "Desk")
        _ = await fixture.client.next("READER")
        await fixture.client.send(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1],\#(value)}"#)
        _ = await fixture.client.next("DOCUMENT")
        let document = await fixture.client.next("DOCUMENT", "ENTER_MRZ", "ENTER_CAN")
        #expect(document?["error"]?.string == error)
        #expect(document?["success"] == .bool(error == nil))
    }

    @Test(
        "wrong arguments are refused, and start nothing",
        arguments: [
            #""groups":[17]"#, #""groups":[0]"#, #""groups":"1""#, #""allowBAC":"yes""#, #""can":"12""#,
            #""mrz":"P<""#, #""can":"654321","mrz":"\#(zoneLines)""#, #""raw":1"#,
        ]
    )
    func wrongArguments(members: String) async throws {
        let fixture = try await Fixture("bac-td3-sha1")
        let answer = await fixture.client.answer(to: #"{"cmd":"RUN_READ_DOCUMENT",\#(members)}"#)
        #expect(answer?["success"] == .bool(false))
        #expect(answer?["error"] == .string("InvalidParameter"))
        #expect(answer?["message"]?.string?.contains("654321") == false)
        let status = await fixture.client.answer(to: #"{"cmd":"GET_STATUS"}"#)
        #expect(status?["workflow"] == .null)
    }

    @Test("null counts as missing", arguments: [#""mrz":null"#, #""can":null"#, #""mrz":null,"can":null"#])
    func null(members: String) async throws {
        let fixture = try await Fixture("bac-td3-sha1")
        await fixture.client.send(#"{"cmd":"RUN_READ_DOCUMENT",\#(members)}"#)
        #expect(await fixture.client.next("ENTER_MRZ", "DOCUMENT")?["msg"] == .string("DOCUMENT"))
        #expect(await fixture.client.next("INSERT_CARD", "ENTER_MRZ", "DOCUMENT")?["success"] == nil)
    }

    // MARK: Cards

    @Test("a document that comes back goes on without a question, with the files that it has", arguments: [10, 14, 20])
    func comesBack(number: Int) async throws {
        let client = fixture.client
        await fixture.begin(groups: [1, 2, 7, 11])
        fixture.script.leave(fixture.backend, at: number)
        await client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
        let wait = await client.next("INSERT_CARD", "DOCUMENT")
        #expect(wait?["msg"] == .string("INSERT_CARD"))
        fixture.backend.insert(into: "Desk")
        let document = await client.next("DOCUMENT", "ENTER_MRZ")
        #expect(document?["msg"] == .string("DOCUMENT"))
        #expect(document?["verdict"] == .string("genuine"))
        #expect(document?["portrait"]?["format"] != nil)
    }

    @Test("a document that leaves again and again before anything new is read is to be placed better, and then read")
    func leavesAgain() async throws {
        let client = fixture.client
        await fixture.begin(groups: [1])
        let leaves = Mutex(true)
        fixture.script.before { [backend = fixture.backend] command throws(CardError) in
            guard command.cla & 0x0C == 0x0C, leaves.withLock({ $0 }) else { return }
            backend.withdraw(from: "Desk")
            throw .removed
        }
        await client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
        var losses = 0
        while await client.next("INSERT_CARD", "PAUSE", "DOCUMENT")?["msg"] == .string("INSERT_CARD"), losses < 20 {
            losses += 1
            fixture.backend.insert(into: "Desk")
        }
        #expect((1...10).contains(losses))
        leaves.withLock { $0 = false }
        await client.send(#"{"cmd":"CONTINUE"}"#)
        fixture.backend.insert(into: "Desk")
        #expect(await client.next("DOCUMENT", "ENTER_MRZ")?["verdict"] == .string("genuine"))
    }

    @Test("another document begins anew, and its key is asked for")
    func anotherDocument() async throws {
        let client = fixture.client
        await fixture.begin(groups: [1])
        fixture.script.leave(fixture.backend, at: 12)
        await client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
        _ = await client.next("INSERT_CARD")
        var other = try Self.description("pace-only-td1")
        other.can = Array("222222".utf8)
        let card = try other.makeCard()
        fixture.backend.onConnect { _ throws(CardError) in ScriptedConnection(to: card) }
        fixture.backend.insert(into: "Desk")
        let question = await client.next("ENTER_MRZ", "DOCUMENT")
        #expect(question?["msg"] == .string("ENTER_MRZ"))
        #expect(question?["error"] == nil)
        let document = await client.ask(#"{"cmd":"SET_CAN","value":"222222"}"#, "DOCUMENT")
        #expect(document?["document"]?["type"] == .string("TD1"))
        #expect(document?["portrait"] == nil)
    }

    /// What happens at EXTERNAL AUTHENTICATE.
    private enum Accident {
        case none, mute
        /// The document is taken out, and the next one can be put on the reader.
        case leaves
        /// So, at the first command after it.
        case leavesAfter
    }

    /// Replaces the document of the fixture by documents without PACE, one after another. `accidents`: what happens at the
    /// first commands EXTERNAL AUTHENTICATE.
    private static func play(
        _ fixture: Fixture,
        _ documents: [VirtualDocumentDescription],
        _ accidents: [Accident]
    ) throws {
        struct State {
            var document = 0
            var proofs = 0
            var leaves = false
        }
        let cards = try documents.map { try $0.makeCard() }
        let state = Mutex(State())
        fixture.backend.onConnect { [backend = fixture.backend] _ throws(CardError) in
            let card = cards[state.withLock { $0.document }]
            return ScriptedConnection { command throws(CardError) in
                let accident = state.withLock { state -> Accident in
                    guard command.ins == 0x82 || state.leaves else { return .none }
                    let accident =
                        state.leaves ? .leaves : state.proofs < accidents.count ? accidents[state.proofs] : .none
                    state.proofs += state.leaves ? 0 : 1
                    state.leaves = accident == .leavesAfter
                    state.document += accident == .leaves ? 1 : 0
                    return accident
                }
                if accident == .mute { throw .mute }
                if accident == .leaves {
                    backend.withdraw(from: "Desk")
                    throw .removed
                }
                return try await card.answer(command)
            } disconnect: { reset in
                if reset { await card.reset() }
            }
        }
    }

    private static let otherFields = #"{"cmd":"SET_MRZ","number":"X1234567","birth":"1970-01-01","expiry":"300101"}"#

    /// The password of the document that `otherFields` open.
    private static let otherInformation = MachineReadableZone.information(
        number: Array("X1234567".utf8),
        birth: Array("700101".utf8),
        expiry: Array("300101".utf8)
    )

    @Test("no data of a document whose EF.SOD was refused are told as those of the next one", arguments: [true, false])
    func swapped(hasSameKey: Bool) async throws {
        let client = fixture.client
        var other = try Self.description("bac-td3-sha1")
        if !hasSameKey { other.information = Self.otherInformation }
        // The first one has another name, and leaves when it is to be opened once more for its EF.SOD.
        var first = try Self.description("bac-td3-sha1")
        first.files["SOD"] = nil
        let group = try #require(first.files["DG1"])
        first.files["DG1"] = Array(String(decoding: group, as: UTF8.self).replacing("ANNA", with: "EVAA").utf8)
        try Self.play(fixture, [first, other], [.none, .leaves])
        await fixture.begin(groups: [1, 2])
        await client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
        #expect(await client.next("INSERT_CARD", "DOCUMENT")?["msg"] == .string("INSERT_CARD"))
        fixture.backend.insert(into: "Desk")
        var document = await client.next("DOCUMENT", "ENTER_MRZ")
        #expect(document?["msg"] == .string(hasSameKey ? "DOCUMENT" : "ENTER_MRZ"))
        #expect(document?["error"] == nil)
        if document?["msg"] == .string("ENTER_MRZ") { document = await client.ask(Self.otherFields, "DOCUMENT") }
        #expect(document?["document"]?["given"] == .string("ANNA MARIA"), "\(document ?? .null)")
        #expect(document?["checks"]?["hashes"]?["result"] == .string("passed"))
        if hasSameKey { #expect(document?["verdict"] == .string("genuineCopyable")) }
    }

    @Test("what has happened to a document does not count for the next one")
    func newTries() async throws {
        let client = fixture.client
        var other = try Self.description("bac-td3-sha1")
        other.information = Self.otherInformation
        // The third time the other document gets the key of the first one.
        try Self.play(
            fixture,
            [try Self.description("bac-td3-sha1"), other],
            [.mute, .leavesAfter, .none, .mute]
        )
        await fixture.begin(groups: [1])
        await client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
        #expect(await client.next("INSERT_CARD", "DOCUMENT")?["msg"] == .string("INSERT_CARD"))
        fixture.backend.insert(into: "Desk")
        #expect(await client.next("ENTER_MRZ", "DOCUMENT")?["msg"] == .string("ENTER_MRZ"))
        let document = await client.ask(Self.otherFields, "DOCUMENT", "ENTER_MRZ")
        #expect(document?["document"]?["given"] == .string("ANNA MARIA"), "\(document ?? .null)")
    }

    @Test(
        "a document that comes back and does not answer at once, or leaves again, goes on without a question",
        arguments: [CardError.mute, .other("disturbed"), .removed]
    )
    func disturbedReturn(error: CardError) async throws {
        let client = fixture.client
        await fixture.begin(groups: [1, 2])
        fixture.script.leave(fixture.backend, at: 14)
        await client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
        _ = await client.next("INSERT_CARD")
        let card = try Self.description("pace-gm-bac").makeCard()
        let connections = Mutex(0)
        fixture.backend.onConnect { [backend = fixture.backend] _ throws(CardError) in
            // The recognition has the first one.
            let isDisturbed = connections.withLock { count in
                count += 1
                return count == 2
            }
            return ScriptedConnection { command throws(CardError) in
                guard isDisturbed, command.ins == 0xB0 else { return try await card.answer(command) }
                if error == .removed { backend.withdraw(from: "Desk") }
                throw error
            } disconnect: { reset in
                if reset { await card.reset() }
            }
        }
        fixture.backend.insert(into: "Desk")
        var document = await client.next("DOCUMENT", "ENTER_MRZ", "INSERT_CARD")
        if error == .removed {
            #expect(document?["msg"] == .string("INSERT_CARD"))
            fixture.backend.insert(into: "Desk")
            document = await client.next("DOCUMENT", "ENTER_MRZ")
        }
        #expect(document?["msg"] == .string("DOCUMENT"))
        #expect(document?["verdict"] == .string("genuine"), "\(document ?? .null)")
    }

    @Test(
        "an eID card stays an eID card, and its document is read when it is asked for, also after a disturbance",
        arguments: [false, true]
    )
    func onEIDCard(isDisturbed: Bool) async throws {
        let fixture = try await Fixture("pace-only-td1")
        let document = try Self.description("pace-only-td1").makeCard()
        let eid = try VirtualCard()
        // The reading has a connection of its own.
        let connections = Mutex(0)
        fixture.backend.onConnect { _ throws(CardError) in
            let number = connections.withLock { count in
                count += 1
                return count
            }
            if isDisturbed, number == 2 {
                return ScriptedConnection { _ throws(CardError) in ResponseAPDU(StatusWord(0x6A82)) }
            }
            return ScriptedConnection(to: number == 1 ? eid : document)
        }
        fixture.backend.insert(into: "Desk")
        let reader = await fixture.client.next("READER")
        #expect(reader?["card"]?["kind"] == .string("eid"))
        #expect(reader?["card"]?["access"] == nil)
        let question = await fixture.client.ask(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1]}"#, "ENTER_MRZ")
        #expect(question?["passwords"] == .array([.string("mrz"), .string("can")]))
        let end = await fixture.client.ask(#"{"cmd":"SET_CAN","value":"654321"}"#, "DOCUMENT")
        #expect(end?["verdict"] == .string("genuine"))
    }

    @Test("an eID card without a document is no document")
    func eidAlone() async throws {
        let fixture = try await Fixture("pace-only-td1")
        let eid = try VirtualCard()
        fixture.backend.onConnect { _ throws(CardError) in ScriptedConnection(to: eid) }
        fixture.backend.insert(into: "Desk")
        _ = await fixture.client.next("READER")
        fixture.backend.onConnect { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                // The card's EF.CardAccess is that of the eID.
                if command.bytes.starts(with: [0x00, 0xB0, 0x9C]) { return ResponseAPDU(StatusWord(0x6A82)) }
                return try await eid.answer(command)
            }
        }
        await fixture.client.send(#"{"cmd":"RUN_READ_DOCUMENT"}"#)
        _ = await fixture.client.next("DOCUMENT")
        let end = await fixture.client.next("DOCUMENT", "ENTER_MRZ")
        #expect(end?["error"] == .string("NotADocument"))
    }

    @Test("the recognition sends no password and starts no PACE")
    func recognitionIsHarmless() async throws {
        fixture.backend.insert(into: "Desk")
        _ = await fixture.client.next("READER")
        let instructions = Set(fixture.script.commands.map(\.ins))
        #expect(instructions == [0xA4, 0xB0])
        #expect(fixture.script.commands.count <= 14)
    }

    // MARK: Disturbed answers

    /// A single answer that is not what the chip has sent.
    enum Disturbance: String, CaseIterable, Sendable {
        case s6988 = "6988", s6F00 = "6F00", s6110 = "6110", s6A82 = "6A82", s6985 = "6985"
        case wrongBit, cut, lost, failed

        func spoil(_ answer: ResponseAPDU) throws(CardError) -> ResponseAPDU {
            switch self {
            case .s6988, .s6F00, .s6110, .s6A82, .s6985:
                return ResponseAPDU(StatusWord(UInt16(rawValue, radix: 16) ?? 0))
            case .wrongBit:
                var spoiled = answer
                if let last = answer.data.indices.last { spoiled.data[last] ^= 1 }
                return spoiled
            case .cut: return ResponseAPDU(data: answer.data.dropLast(answer.data.count / 2), answer.status)
            case .lost: throw .mute
            case .failed: throw .other("disturbed")
            }
        }
    }

    @Test(
        "one disturbed answer never makes a genuine document suspect",
        arguments: [
            ("bac-aa-rsa", true), ("bac-ca-3des", true), ("pace-gm-bac", true), ("pace-cam-ca", true),
            ("bac-aa-rsa", false), ("bac-ca-3des", false),
        ],
        Disturbance.allCases
    )
    func disturbed(document: (name: String, hasAccessControl: Bool), disturbance: Disturbance) async throws {
        let fixture = try await Fixture(document.name) { description in
            if !document.hasAccessControl { description.hasBAC = false }
        }
        await fixture.disturbEachAnswer(disturbance)
    }

    @Test("what fails twice counts", arguments: ["aa-wrong-key", "ca-wrong-key"])
    func failsTwice(name: String) async throws {
        let fixture = try await Fixture(name)
        let document = await fixture.read()
        #expect(document?["verdict"] == .string("suspect"))
        let accesses = fixture.script.commands.filter { $0.ins == 0x84 }.count
        // Chip authentication with a wrong key ends the channel. The second time it is the last step.
        #expect(accesses == (name == "aa-wrong-key" ? 2 : 3))
    }

    @Test("the chip is reset before the next value", arguments: ["bac-td3-sha1", "pace-only-td1"])
    func resetBeforeNextValue(name: String) async throws {
        let fixture = try await Fixture(name)
        let card = try Self.description(name).makeCard()
        let resets = Mutex(0)
        fixture.backend.onConnect { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                try await card.answer(command)
            } disconnect: { reset in
                if reset { resets.withLock { $0 += 1 } }
            }
        }
        await fixture.begin(groups: [1])
        let wrong = #"{"cmd":"SET_MRZ","number":"X1234567","birth":"1970-01-01","expiry":"300101"}"#
        for count in 1...3 {
            let question = await fixture.client.ask(wrong, "ENTER_MRZ")
            #expect(question?["error"] == .string("wrongPassword"))
            #expect(resets.withLock { $0 } == count)
        }
    }

    @Test("a chip that needs a reset is reset once, because what was learnt is kept")
    func keepsKnowledge() async throws {
        let fixture = try await Fixture("bac-td3-sha1") {
            ($0.quirks.noShortID, $0.quirks.endsChannel) = (0x6985, [0x6985])
        }
        // The chip keeps the lost channel until it is reset.
        let card = try {
            var description = try Self.description("bac-td3-sha1")
            (description.quirks.noShortID, description.quirks.endsChannel) = (0x6985, [0x6985])
            return try description.makeCard()
        }()
        let challenges = Mutex(0)
        let resets = Mutex(0)
        fixture.backend.onConnect { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                let isSecond = challenges.withLock { count in
                    if command.ins == 0x84 { count += 1 }
                    return command.ins == 0x84 && count > 1
                }
                return isSecond ? ResponseAPDU(StatusWord(0x6982)) : try await card.answer(command)
            } disconnect: { reset in
                guard reset else { return }
                challenges.withLock { $0 = 0 }
                resets.withLock { $0 += 1 }
                await card.reset()
            }
        }
        let document = await fixture.read()
        #expect(document?["verdict"] == .string("genuineCopyable"))
        #expect(resets.withLock { $0 } == 2)
    }

    // MARK: Values of people

    @Test(
        "a value that cannot be does not reach the chip",
        arguments: [
            #""number":"L898902C3","birth":"1974-02-31","expiry":"350415""#,
            #""number":"L898902C3","birth":"740812","expiry":"350431""#,
            #""number":"L898902C36","birth":"740812","expiry":"350415""#,
            #""number":"L898902C3","birth":"7408122","expiry":"350415""#,
            #""number":"L898902C3","birth":"740812","expiry":"2035-13-01""#,
        ]
    )
    func impossibleValue(members: String) async throws {
        let fixture = try await Fixture("bac-td3-sha1")
        await fixture.begin(groups: [1])
        let before = fixture.script.commands.count
        let question = await fixture.client.ask(#"{"cmd":"SET_MRZ",\#(members)}"#, "ENTER_MRZ")
        #expect(question?["error"] == .string("malformed"))
        #expect(fixture.script.commands.count == before)
    }

    @Test("guillemets of a text recognition open the document", arguments: ["«", "\\u00ab"])
    func guillemets(guillemet: String) async throws {
        let fixture = try await Fixture("bac-td3-sha1")
        await fixture.begin(groups: [1])
        let scanned = zoneLines.replacingOccurrences(of: "<<", with: guillemet).lowercased()
            .replacingOccurrences(of: "\\u00ab", with: "\\u00AB")
        let document = await fixture.client.ask(#"{"cmd":"SET_MRZ","value":"\#(scanned)"}"#, "DOCUMENT", "ENTER_MRZ")
        #expect(document?["verdict"] == .string("genuineCopyable"), "\(document ?? .null)")
    }

    @Test("a name that was scanned differently is a fault")
    func scannedName() async throws {
        let fixture = try await Fixture("bac-td3-sha1")
        await fixture.begin(groups: [1])
        let other = zoneLines.replacingOccurrences(of: "ANNA", with: "EVAA")
        let document = await fixture.client.ask(#"{"cmd":"SET_MRZ","value":"\#(other)"}"#, "DOCUMENT")
        #expect(document?["verdict"] == .string("suspect"))
        let findings = document?["checks"]?["document"]?["findings"]?.array
        #expect(findings?.first?["finding"] == .string("mrzDiffers"))
    }

    @Test("raw has the files that prove the document", arguments: ["bac-td3-sha1", "pace-cam-ca"])
    func evidence(name: String) async throws {
        let fixture = try await Fixture(name)
        fixture.backend.insert(into: "Desk")
        _ = await fixture.client.ask(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1],"raw":true}"#, "ENTER_MRZ")
        let document = await fixture.client.ask(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#, "DOCUMENT")
        let files = try Self.description(name).files
        var expected: [String: String] = [:]
        for file in ["SOD", "COM", "CardAccess", "CardSecurity"] {
            expected["EF.\(file)"] = files[file].map { Base64.standard.encode($0) }
        }
        var found: [String: String] = [:]
        for file in document?["files"]?.array ?? [] { found[file["file"]?.string ?? ""] = file["data"]?.string }
        #expect(found == expected)
    }

    @Test("a chip without access control is read, and the result says so")
    func noAccessControl() async throws {
        let fixture = try await Fixture("bac-aa-rsa") { $0.hasBAC = false }
        let document = await fixture.read()
        #expect(document?["verdict"] == .string("genuine"))
        #expect(document?["access"] == .object([.init("protocol", .string("none"))]))
        let findings = document?["checks"]?["document"]?["findings"]
        #expect(findings == .array([.object([.init("finding", .string("noAccessControl"))])]))
    }

    @Test(
        "the refusal to begin BAC has its status word, and nobody is told to give what was given",
        arguments: [(0x6581, "CardError"), (0x6D00, "AccessUnsupported")]
    )
    func challengeRefused(status: Int, error: String) async throws {
        let fixture = try await Fixture("bac-td3-sha1")
        await fixture.begin()
        let card = try Self.description("bac-td3-sha1").makeCard()
        fixture.backend.onConnect { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                command.ins == 0x84 ? ResponseAPDU(StatusWord(UInt16(status))) : try await card.answer(command)
            }
        }
        fixture.script.spoil(at: 0) { _ throws(CardError) in throw .mute }
        let end = await fixture.client.ask(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#, "DOCUMENT")
        #expect(end?["error"] == .string(error))
        #expect(end?["sw"]?.string == String(status, radix: 16).uppercased())
        #expect(end?["message"]?.string?.contains("give the MRZ") == false)
    }

    // MARK: The workflow

    @Test("STATUS tells the group, its bytes and its length")
    func progress() async throws {
        await fixture.begin(groups: [1, 2])
        await fixture.client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
        var (groups, percents): (Set<Int>, [Int]) = ([], [])
        while let message = await fixture.client.next("STATUS", "DOCUMENT"), message["msg"] == .string("STATUS") {
            percents.append(message["progress"]?.int ?? -1)
            guard let group = message["group"]?.int else { continue }
            groups.insert(group)
            #expect(message["step"] == .string("reading"))
            let (bytes, total) = (try #require(message["bytes"]?.int), try #require(message["total"]?.int))
            #expect(total > 0 && (0...total).contains(bytes))
        }
        #expect(percents == percents.sorted())
        #expect(groups.contains(2))
    }

    @Test("CANCEL ends a reading during any command, and the reader is free after it", arguments: 0..<19)
    func cancelAtCommand(number: Int) async throws {
        await fixture.begin()
        let before = fixture.script.commands.count
        let (reached, release) = fixture.script.hold(at: number)
        await fixture.client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
        for await _ in reached { break }
        await fixture.client.send(#"{"cmd":"CANCEL"}"#)
        let end = await fixture.client.next("DOCUMENT")
        #expect(end?["error"] == .string("User_Cancelled"))
        #expect(fixture.server.isLent("Desk"))
        release.yield()
        await fixture.server.released("Desk")
        #expect(fixture.script.commands.count == before + number + 1)
    }

    @Test("the end of the daemon waits until the card of a cancelled reading is reset")
    func end() async throws {
        let card = try Self.description("pace-gm-bac").makeCard()
        let isReset = Mutex(false)
        let isOver = Mutex(false)
        let script = fixture.script
        fixture.backend.onConnect { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                try await script.run(command)
                return try await card.answer(command)
            } disconnect: { reset in
                if reset { isReset.withLock { $0 = true } }
            }
        }
        await fixture.begin()
        let (reached, release) = script.hold(at: 5)
        await fixture.client.send(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#)
        for await _ in reached { break }
        _ = await fixture.client.ask(#"{"cmd":"CANCEL"}"#, "DOCUMENT")
        let end = Task { @Loop in
            await fixture.server.registry.stop()
            isOver.withLock { $0 = true }
        }
        // An end that does not wait would be over after a round trip.
        _ = await fixture.client.answer(to: #"{"cmd":"GET_STATUS"}"#)
        #expect(!isOver.withLock { $0 } && !isReset.withLock { $0 })
        release.yield()
        await end.value
        #expect(isReset.withLock { $0 })
    }

    @Test("a chip that breaks PACE is not read with BAC")
    func noFallback() async throws {
        await fixture.begin()
        fixture.script.before { command throws(CardError) in
            if command.ins == 0x86 { throw .other("disturbed") }
        }
        let end = await fixture.client.ask(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#, "DOCUMENT")
        #expect(end?["success"] == .bool(false))
        #expect(fixture.script.commands.allSatisfy { $0.ins != 0x84 })
    }

    // MARK: Authorities

    @Test("without an authority the check is not done, and the verdict says so")
    func noAuthority() async throws {
        let fixture = try await Fixture("bac-aa-rsa", authorities: [])
        let document = await fixture.read()
        #expect(document?["verdict"] == .string("unverified"))
        #expect(document?["checks"]?["authority"]?["result"] == .string("notDone"))
        let health = await fixture.client.answer(to: #"{"cmd":"GET_HEALTH"}"#)
        let check = health?["checks"]?.array?.first { $0["name"] == .string("documentAnchors") }
        #expect(check?["ok"] == .bool(false))
        #expect(check?["optional"] == .bool(true))
    }

    @Test("a missing folder of authorities is a fault, if it is not the default one", arguments: [true, false])
    func missingFolder(mayBeMissing: Bool) async throws {
        let folder = DocumentAnchorFolder("/nowhere/csca", mayBeMissing: mayBeMissing, warn: { _ in })
        let server = try await TestServer(readers: 0, moreFeatures: { [DocumentFeature($0, folder)] })
        let client = try server.connect()
        let health = await client.answer(to: #"{"cmd":"GET_HEALTH"}"#)
        let check = health?["checks"]?.array?.first { $0["name"] == .string("documentAnchors") }
        #expect(check?["ok"] == .bool(mayBeMissing))
        #expect(check?["optional"] == nil)
    }

    @Test("crl_required makes the verdict depend on a current revocation list")
    func requiresRevocationList() async throws {
        let fixture = try await Fixture("bac-aa-rsa", requiresRevocationList: true)
        let document = await fixture.read()
        #expect(document?["verdict"] == .string("unverified"))
        #expect(document?["checks"]?["authority"]?["reason"] == .string("noRevocationList"))
    }

    @Test("a document that was waited for is judged by the clock and the authorities of its reading")
    func waited() async throws {
        let fixture = try await Fixture("bac-aa-rsa")
        let client = fixture.client
        #expect(await client.exchange(#"{"cmd":"RUN_READ_DOCUMENT"}"#).last == #"{"msg":"INSERT_CARD"}"#)
        // The document expires in 2035, and its authorities leave the folder.
        fixture.clock.advance(3650 * 86_400)
        for name in try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path) {
            try FileManager.default.removeItem(atPath: "\(fixture.folder.path)/\(name)")
        }
        fixture.backend.insert(into: "Desk")
        _ = await client.next("ENTER_MRZ")
        let document = await client.ask(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#, "DOCUMENT")
        #expect(document?["checks"]?["authority"]?["reason"] == .string("unknownAuthority"))
        let findings = document?["checks"]?["document"]?["findings"]?.array?.compactMap { $0["finding"]?.string }
        #expect(findings?.contains("expired") == true)
        #expect(document?["verdict"] == .string("suspect"))
    }

    @Test("a damaged list of the country keeps its documents from being genuine, and GET_HEALTH has the file")
    func unusableList() async throws {
        let fixture = try await Fixture("bac-aa-rsa")
        try fixture.folder.write("UT-1.crl", [0x30, 0x03, 0x02])
        let document = await fixture.read()
        #expect(document?["verdict"] == .string("unverified"))
        let authority = document?["checks"]?["authority"]
        #expect(authority?["result"] == .string("notDone"))
        #expect(authority?["reason"] == .string("unusableList"))
        #expect(authority?["crl"] == .string("notDone"))
        #expect(authority?["unusableLists"]?.array?.first?.string?.hasPrefix("UT-1.crl: ") == true)
        #expect(authority?["advice"] != nil)
        let health = await fixture.client.answer(to: #"{"cmd":"GET_HEALTH"}"#)
        let check = health?["checks"]?.array?.first { $0["name"] == .string("documentAnchors") }
        #expect(check?["ok"] == .bool(false))
        #expect(check?["unusableLists"]?.int == 1)
        #expect(check?["cause"]?.string?.contains("UT-1.crl") == true)
        #expect(check?["advice"]?.string?.contains("import the list again") == true)
    }

    @Test("GET_DOCUMENT_ANCHORS tells what is trusted")
    func anchors() async throws {
        let fixture = try await Fixture("bac-aa-rsa")
        let answer = await fixture.client.answer(to: #"{"cmd":"GET_DOCUMENT_ANCHORS"}"#)
        #expect(answer?["authorities"]?.int == 3)
        #expect(answer?["countries"] == .array([.string("UT")]))
        #expect(answer?["newest"]?.string?.count == 10)
        #expect(answer?["warnings"] == .array([]))
    }
}
