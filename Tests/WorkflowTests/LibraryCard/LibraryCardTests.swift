// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

/// A new card kind with a workflow, a prompt and two messages, registered in one line and driven over a socket.
@Suite("A card kind outside of Sources", .timeLimit(.minutes(5)))
struct LibraryCardTests {
    /// A server with the feature, a reader, and a client.
    @Loop private struct Fixture {
        let backend: ScriptedReaders
        let server: TestServer
        let client: TestClient

        init(_ connect: @escaping ScriptedReaders.Connect) async throws {
            backend = ScriptedReaders(connect: connect)
            server = try await TestServer(readers: 0, backends: [backend], moreFeatures: { [LibraryFeature($0)] })
            backend.add(ReaderDescription(name: "Desk"))
            await server.ready(["Desk"])
            client = try server.connect()
            _ = await client.exchange()
        }

        init() async throws {
            let card = try VirtualLibraryDescription().makeCard()
            try await self.init { _ throws(CardError) in ScriptedConnection(to: card) }
        }
    }

    /// READER of the desk; nil: no card.
    private static func reader(books: Int?) -> JSON {
        let card = books.map { JSON.object([.init("kind", .string("library")), .init("books", .number(String($0)))]) }
        return .object([
            .init("msg", .string("READER")), .init("name", .string("Desk")), .init("attached", .bool(true)),
            .init("insertable", .bool(false)), .init("keypad", .bool(false)), .init("driver", .string("scripted")),
            .init("card", card ?? .null),
        ])
    }

    @Test("READER has the kind of the card and the members of the kind")
    @Loop func recognition() async throws {
        let fixture = try await Fixture()
        fixture.backend.insert(into: "Desk")
        #expect(await fixture.client.next() == Self.reader(books: 1))
        fixture.backend.withdraw(from: "Desk")
        #expect(await fixture.client.next() == Self.reader(books: nil))
    }

    @Test("the workflow asks for the PIN, uses the card and reports the change")
    @Loop func workflow() async throws {
        let fixture = try await Fixture()
        let client = fixture.client
        #expect(await client.exchange(#"{"cmd":"RUN_LEND"}"#) == [#"{"msg":"LEND"}"#, #"{"msg":"INSERT_CARD"}"#])
        fixture.backend.insert(into: "Desk")
        #expect(await client.next("ENTER_LIBRARY_PIN") == #"{"msg":"ENTER_LIBRARY_PIN","question":1}"#)
        let status = await client.answer(to: #"{"cmd":"GET_STATUS"}"#)
        #expect(status == #"{"msg":"STATUS","workflow":"LEND","progress":0,"state":"ENTER_LIBRARY_PIN"}"#)
        #expect(
            await client.ask(#"{"cmd":"SET_LIBRARY_PIN","value":2468,"request":7}"#, "ENTER_LIBRARY_PIN")
                == #"{"msg":"ENTER_LIBRARY_PIN","error":"Invalid value","question":1,"request":7}"#
        )
        await client.send(#"{"cmd":"SET_LIBRARY_PIN","value":"2468"}"#)
        #expect(await client.next("READER") == Self.reader(books: 2))
        #expect(await client.next("LEND") == #"{"msg":"LEND","outcome":"lent"}"#)
        #expect(!fixture.server.isLent("Desk"))
    }

    @Test("a wrong PIN is sent once, and the workflow ends with its reason")
    @Loop func wrongPIN() async throws {
        let fixture = try await Fixture()
        fixture.backend.insert(into: "Desk")
        _ = try #require(await fixture.client.ask(#"{"cmd":"RUN_LEND"}"#, "ENTER_LIBRARY_PIN"))
        let end = await fixture.client.ask(#"{"cmd":"SET_LIBRARY_PIN","value":"1357"}"#, "LEND")
        #expect(end == #"{"msg":"LEND","outcome":"wrong PIN"}"#)
    }

    @Test("a prompt is bound to one insertion: a new card asks again, with a new number")
    @Loop func insertion() async throws {
        let fixture = try await Fixture()
        fixture.backend.insert(into: "Desk")
        _ = try #require(await fixture.client.ask(#"{"cmd":"RUN_LEND"}"#, "ENTER_LIBRARY_PIN"))
        fixture.backend.withdraw(from: "Desk")
        #expect(await fixture.client.next("INSERT_CARD") == #"{"msg":"INSERT_CARD"}"#)
        #expect(
            await fixture.client.ask(#"{"cmd":"SET_LIBRARY_PIN","value":"2468"}"#, "BAD_STATE")
                == #"{"msg":"BAD_STATE","error":"SET_LIBRARY_PIN"}"#
        )
        fixture.backend.insert(into: "Desk")
        #expect(await fixture.client.next("ENTER_LIBRARY_PIN")?["question"] == .number("2"))
        #expect(await fixture.client.ask(#"{"cmd":"CANCEL"}"#, "LEND") == #"{"msg":"LEND","outcome":"Cancelled"}"#)
    }

    @Test("each workflow explains a card of another kind")
    @Loop func otherKind() async throws {
        let eid = try VirtualCard()
        let fixture = try await Fixture { _ throws(CardError) in ScriptedConnection(to: eid) }
        fixture.backend.insert(into: "Desk")
        #expect(await fixture.client.next("READER")?["card"]?["kind"] == .string("eid"))
        let refusal = await fixture.client.ask(#"{"cmd":"RUN_LEND"}"#, "INSERT_CARD")
        #expect(
            refusal
                == #"""
                {"msg":"INSERT_CARD","reader":"Desk",\#
                "error":"The card in reader 'Desk' is not a library card: use another one",\#
                "errorWords":{"template":"The card in reader '{0}' is not a library card: use another one","values":["Desk"]}}
                """#
        )
        _ = await fixture.client.ask(#"{"cmd":"CANCEL"}"#, "LEND")

        let library = try await Fixture()
        library.backend.insert(into: "Desk")
        _ = await library.client.next("READER")
        let error = await library.client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")?["error"]?.string
        #expect(error?.contains("is not an eID card") == true)
    }

    /// A server with a virtual reader that takes library cards, and a client that waits for a card.
    @Loop private static func virtualServer() async throws -> (TestServer, TestClient) {
        let server = try await TestServer(moreCards: [VirtualLibraryKind()], moreFeatures: { [LibraryFeature($0)] })
        let client = try server.connect()
        _ = try #require(await client.ask(#"{"cmd":"RUN_LEND"}"#, "INSERT_CARD"))
        return (server, client)
    }

    @Test("SET_CARD inserts a virtual card of the kind, which keeps its state between insertions")
    @Loop func virtualCard() async throws {
        let (server, client) = try await Self.virtualServer()
        await client.send(#"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"library","books":3}}"#)
        #expect(await client.next("READER")?["card"] == #"{"kind":"library","books":3}"#)
        _ = try #require(await client.next("ENTER_LIBRARY_PIN"))
        await client.send(#"{"cmd":"SET_LIBRARY_PIN","value":"2468"}"#)
        #expect(await client.next("LEND") == #"{"msg":"LEND","outcome":"lent"}"#)
        _ = try #require(await client.ask(#"{"cmd":"RUN_LEND"}"#, "INSERT_CARD"))
        await client.send(#"{"cmd":"SET_CARD","name":"Simulator"}"#)
        _ = try #require(await client.next("ENTER_LIBRARY_PIN"))
        let reader = await client.answer(to: #"{"cmd":"GET_READER","name":"Simulator"}"#)
        #expect(reader?["card"] == #"{"kind":"library","books":4}"#)
        #expect(await server.readers?.cardState(in: "Simulator") == nil)
    }

    @Test("SET_CARD orders faults of each kind of virtual card")
    @Loop func fault() async throws {
        let (server, client) = try await Self.virtualServer()
        await client.send(#"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"library"}}"#)
        _ = try #require(await client.next("ENTER_LIBRARY_PIN"))
        // Recognition and SELECT have sent so many commands; the next one is VERIFY.
        let commands = try #require(await server.readers?.card(in: "Simulator")?.apdus)
        _ = try #require(await client.ask(#"{"cmd":"CANCEL"}"#, "LEND"))
        _ = try #require(await client.ask(#"{"cmd":"RUN_LEND"}"#, "INSERT_CARD"))
        await client.send(
            #"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"library","latencyMs":1,"#
                + #""faults":[{"afterApdu":\#(commands),"do":"remove"}]}}"#
        )
        _ = try #require(await client.next("ENTER_LIBRARY_PIN"))
        await client.send(#"{"cmd":"SET_LIBRARY_PIN","value":"2468"}"#)
        _ = try #require(await client.next("INSERT_CARD"))
        #expect(await server.readers?.card(in: "Simulator")?.faultsLeft == 0)
    }

    @Test(
        "a wrong description of the kind, and an unknown kind, are refused by entry name",
        arguments: [
            (#""card":{"kind":"library","books":10}"#, "card", "card.books is not a whole number from 0 to 9"),
            (#""card":{"kind":"library"},"simulator":{}"#, "simulator", "simulator is only for eID cards"),
            (#""card":{"kind":"tram"}"#, "card", "card.kind is not one of eid, library"),
            (#""card":{"kind":7}"#, "card", "card.kind is not one of eid, library"),
        ]
    )
    @Loop func refused(members: String, parameter: String, error: String) async throws {
        let (server, client) = try await Self.virtualServer()
        let answer = await client.ask(#"{"cmd":"SET_CARD","name":"Simulator",\#(members)}"#, "INSERT_CARD")
        #expect(answer?["error"]?.string == "Parameter '\(parameter)' is invalid: \(error)")
        #expect(server.registry["Simulator"]?.insertion == nil)
    }

    @Test("without a kind SET_CARD inserts an eID card")
    @Loop func defaultKind() async throws {
        let (_, client) = try await Self.virtualServer()
        await client.send(#"{"cmd":"SET_CARD","name":"Simulator","card":{"retryCounter":2}}"#)
        #expect(await client.next("READER")?["card"]?["retryCounter"] == .number("2"))
    }
}
