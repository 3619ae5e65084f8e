// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Server
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("Several clients", .timeLimit(.minutes(5)))
struct ClientsTests {
    @Test("each client has its own API level, and a new client starts at 3")
    @Loop func levels() async throws {
        let server = try await TestServer()
        let clients = [try server.connect(), try server.connect(), try server.connect()]
        for (index, client) in clients.enumerated() {
            _ = await client.exchange(#"{"cmd":"SET_API_LEVEL","level":\#(index + 1)}"#)
        }
        for (index, client) in clients.enumerated() {
            let answer = await client.exchange(#"{"cmd":"GET_API_LEVEL"}"#)
            #expect(answer.map { $0["current"]?.int } == [index + 1])
        }
        for client in clients { client.close() }
        let next = try server.connect()
        #expect(await next.ask(#"{"cmd":"GET_API_LEVEL"}"#, "API_LEVEL")?["current"]?.int == 3)
    }

    @Test("each client enables STATUS for itself")
    @Loop func status() async throws {
        let server = try await TestServer(readers: 2)
        for (member, reader, expected) in [
            (#","status":false"#, "Simulator", "ENTER_NEW_PIN"), ("", "Simulator 2", "STATUS"),
        ] {
            try await server.insert(into: reader)
            let client = try server.connect()
            _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(reader)"\#(member)}"#, "ENTER_PIN")
            let next = await client.ask(Fixture.setPIN, "STATUS", "ENTER_NEW_PIN")
            #expect(next?["msg"]?.string == expected)
        }
    }

    @Test("only the client of a workflow receives its messages; other clients receive READER")
    @Loop func separation() async throws {
        let server = try await TestServer()
        let (runner, witness) = (try server.connect(), try server.connect())
        _ = await witness.exchange()
        _ = await runner.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        try await server.insert()
        _ = await runner.next("ENTER_PIN")
        _ = await runner.ask(Fixture.setPIN, "ENTER_NEW_PIN")
        _ = await runner.ask(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#, "CHANGE_PIN")

        let free = JSON.simulator(card: .card(tries: 3), keypad: false)
        let heard = await witness.exchange()
        #expect(
            heard == [
                free, free.with("busy", .bool(true)),
                JSON.simulator(card: .null, keypad: false).with("busy", .bool(true)),
                .simulator(card: .null, keypad: false),
            ]
        )
        #expect(runner.transcript.allSatisfy { $0["busy"] == nil && $0["reader"]?["busy"] == nil })
        // GET_STATUS of another client does not show the workflow.
        #expect(await witness.exchange(#"{"cmd":"GET_STATUS"}"#) == [Moment.idle.status])
    }

    @Test("a reader in a workflow has `busy` in answers to other clients only")
    @Loop func busy() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        let witness = try fixture.server.connect()
        let own = JSON.simulator(card: .card(tries: 3), keypad: false)
        for (client, reader) in [(fixture.client, own), (witness, own.with("busy", .bool(true)))] {
            if client === witness { #expect(await client.next() == reader) }
            let answers = await client.exchange(
                #"{"cmd":"GET_READER","name":"Simulator"}"#,
                #"{"cmd":"GET_READER_LIST"}"#
            )
            #expect(answers == [reader, .readerList(reader)])
        }
    }

    @Test("commands of one client never reach the workflow of another")
    @Loop func otherClients() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        let stranger = try fixture.server.connect()
        _ = await stranger.exchange()
        for command in ["SET_PIN", "CANCEL", "SET_CARD"] {
            #expect(
                await stranger.exchange(#"{"cmd":"\#(command)","value":"000000","name":"Simulator"}"#)
                    == [#"{"error":"\#(command)","msg":"BAD_STATE"}"#]
            )
        }
        #expect(await fixture.client.exchange(#"{"cmd":"GET_STATUS"}"#) == [Moment.enterPIN.status])
        #expect(await fixture.readers.cardState(in: "Simulator")?.retryCounter == 3)
    }

    @Test("a client that waits for a busy reader receives one error and gets the reader when it is free")
    @Loop func queue() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        let second = try fixture.server.connect()
        let waiting = await second.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD", "ENTER_PIN")
        let error = "Reader 'Simulator' is busy in another client's workflow: wait for its end or use another reader"
        #expect(waiting?.withoutAdditions == .insertCard(error, reader: "Simulator"))
        _ = await fixture.client.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        // The end of the first workflow has taken the card out.
        #expect(await second.ask(#"{"cmd":"SET_CARD","name":"Simulator"}"#, "ENTER_PIN", "BAD_STATE") != nil)
        #expect(second.transcript.filter { $0["error"]?.string == error }.count == 1)
    }

    @Test("SET_CARD is refused for a reader in another client's workflow")
    @Loop func setCardBusy() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        let second = try fixture.server.connect()
        _ = await second.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        _ = await second.exchange()
        let error = "Reader 'Simulator' is busy in another client's workflow: wait for its end or use another reader"
        let refusal = await second.exchange(#"{"cmd":"SET_CARD","name":"Simulator"}"#)
        #expect(refusal.map(\.withoutAdditions) == [.insertCard(error)])
        let template = "Reader '{0}' is busy in another client's workflow: wait for its end or use another reader"
        #expect(
            refusal.first?["errorWords"]
                == .object([.init("template", .string(template)), .init("values", .array([.string("Simulator")]))])
        )
    }

    @Test("the end of a workflow does not remove the card of the next workflow")
    @Loop func cardsInTurn() async throws {
        let server = try await TestServer()
        var (last, next) = (try server.connect(), try server.connect())
        _ = await last.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        _ = await last.ask(#"{"cmd":"SET_CARD","name":"Simulator"}"#, "ENTER_PIN")
        for _ in 0..<50 {
            _ = await next.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
            _ = await next.exchange()
            last.close()
            while let reader = await next.next("READER"), reader["busy"] != nil || reader["card"] != .null {}
            // The reader is free: INSERT_CARD may come for that, too.
            var answer = await next.ask(#"{"cmd":"SET_CARD","name":"Simulator"}"#, "ENTER_PIN", "INSERT_CARD")
            while answer?["msg"]?.string == "INSERT_CARD", answer?["error"] == nil {
                answer = await next.next("ENTER_PIN", "INSERT_CARD")
            }
            #expect(answer?["msg"]?.string == "ENTER_PIN")
            (last, next) = (next, try server.connect())
        }
    }

    @Test("a silent client with a workflow blocks its reader only")
    @Loop func silence() async throws {
        let server = try await TestServer(readers: 2)
        let silent = try server.connect()
        silent.isReading = false
        try await server.insert()
        await silent.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)

        let other = try server.connect()
        // The silent client must take the first reader before the second reader has a card.
        while let reader = await other.next("READER"), reader["busy"]?.bool != true {}
        try await server.insert(into: "Simulator 2")
        _ = try #require(await other.ask(#"{"cmd":"RUN_CHANGE_PIN","reader":"Simulator 2"}"#, "ENTER_PIN"))
        _ = try #require(await other.ask(Fixture.setPIN, "ENTER_NEW_PIN"))
        let final = await other.ask(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#, "CHANGE_PIN")
        #expect(final == #"{"msg":"CHANGE_PIN","success":true}"#)
        #expect(server.isLent("Simulator"))
        silent.close()
        let third = try server.connect()
        #expect(await third.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PIN", "INSERT_CARD") != nil)
    }
}
