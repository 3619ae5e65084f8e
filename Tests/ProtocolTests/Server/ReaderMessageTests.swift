// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EIDFeature
import Host
import ISO7816
import Readers
import Server
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("READER messages", .timeLimit(.minutes(5)))
struct ReaderMessageTests {
    /// Returns a backend without cards.
    private static func readers(_ name: String = "scripted") -> ScriptedReaders {
        ScriptedReaders(name) { (_) throws(CardError) in throw .removed }
    }

    @Test("a new client receives READER for every reader, sorted by name, with its card")
    @Loop func onConnect() async throws {
        let server = try await TestServer(readers: 3)
        let witness = try server.connect()
        _ = await witness.exchange()
        try await server.insert(.card { $0.retryCounter = 2 }, into: "Simulator 2")
        _ = await witness.next("READER")
        let client = try server.connect()
        func reader(_ name: String, _ card: JSON) -> JSON {
            JSON.simulator(card: card, keypad: false).with("name", .string(name))
        }
        #expect(
            await client.exchange() == [
                reader("Simulator", .null), reader("Simulator 2", .card(tries: 2)), reader("Simulator 3", .null),
            ]
        )
    }

    @Test("a connected client receives READER when a reader is added, changed or removed")
    @Loop func early() async throws {
        let readers = Self.readers()
        let server = try await TestServer(readers: 0, backends: [readers])
        let client = try server.connect()
        #expect(await client.exchange(#"{"cmd":"GET_READER_LIST"}"#) == [.readerList()])
        readers.add(ReaderDescription(name: "Late"))
        #expect(
            await client.next()
                == #"{"attached":true,"card":null,"driver":"scripted","insertable":false,"keypad":false,"msg":"READER","name":"Late"}"#
        )
        readers.change(ReaderDescription(name: "Late", hasKeypad: true))
        #expect(
            await client.next()
                == #"{"attached":true,"card":null,"driver":"scripted","insertable":false,"keypad":true,"msg":"READER","name":"Late"}"#
        )
        readers.remove("Late")
        #expect(await client.next() == #"{"attached":false,"msg":"READER","name":"Late"}"#)
        #expect(await client.exchange(#"{"cmd":"GET_READER_LIST"}"#) == [.readerList()])
        readers.add(ReaderDescription(name: "Late"))
        #expect(await client.next()?["attached"] == .bool(true))
    }

    @Test("READER is sent only when a card is inserted, changed or removed")
    @Loop func changes() async throws {
        let fixture = try await Fixture(at: .idle)
        try await fixture.server.insert(.card { $0.deactivated = true })
        let deactivated = JSON.card(tries: 0).with("deactivated", .bool(true))
        #expect(await fixture.client.next() == .simulator(card: deactivated, keypad: false))
        await fixture.server.withdraw()
        #expect(await fixture.client.next() == .simulator(card: .null, keypad: false))
        try await fixture.server.insert(.card { $0.hasKeypad = true })
        #expect(await fixture.client.next() == .simulator(card: .null, keypad: true))
        #expect(await fixture.client.next() == .simulator(card: .card(tries: 3), keypad: true))
        #expect(await fixture.client.exchange() == [])
    }

    @Test("of two readers with one name only the first is used, and the log reports it")
    @Loop func sameName() async throws {
        let first = Self.readers("first")
        let second = Self.readers("second")
        let server = try await TestServer(readers: 0, backends: [first, second])
        let client = try server.connect()
        first.add(ReaderDescription(name: "Twin"))
        #expect(await client.next()?["keypad"] == .bool(false))
        second.add(ReaderDescription(name: "Twin", hasKeypad: true))
        second.add(ReaderDescription(name: "Other"))
        #expect(await client.next()?["name"] == .string("Other"))
        #expect(await client.exchange(#"{"cmd":"GET_READER","name":"Twin"}"#).first?["keypad"] == .bool(false))
        #expect(server.logged.contains { $0.contains("'Twin'") })
        // A removal by the second backend does not remove the first backend's reader.
        second.remove("Twin")
        second.remove("Other")
        #expect(await client.next()?["name"] == .string("Other"))
        #expect(await client.exchange(#"{"cmd":"GET_READER","name":"Twin"}"#).first?["attached"] == .bool(true))
    }

    @Test(
        "GET_READER requires a name; an unknown reader is not attached",
        arguments: [
            (#""name":"nope""#, #"{"attached":false,"msg":"READER","name":"nope"}"#),
            (#""name":"""#, #"{"attached":false,"msg":"READER","name":""}"#),
            (#""name":"Simulator ""#, #"{"attached":false,"msg":"READER","name":"Simulator "}"#),
            (#""name":5"#, #"{"error":"Invalid name","msg":"READER"}"#),
            (#""name":null"#, #"{"error":"Invalid name","msg":"READER"}"#),
            (#""Name":"Simulator""#, #"{"error":"Name cannot be undefined","msg":"READER"}"#),
        ]
    )
    @Loop func getReader(_ member: String, _ answer: String) async throws {
        let fixture = try await Fixture(at: .idle)
        #expect(await fixture.client.exchange(#"{"cmd":"GET_READER",\#(member)}"#) == [JSON(stringLiteral: answer)])
    }

    // MARK: Health

    @Test("GET_HEALTH returns the last report of each backend, in the order of the backends")
    @Loop func health() async throws {
        let first = Self.readers("first")
        let second = Self.readers("second")
        let server = try await TestServer(readers: 0, backends: [first, second])
        let client = try server.connect()
        #expect(await client.exchange(#"{"cmd":"GET_HEALTH"}"#) == [#"{"checks":[],"msg":"HEALTH"}"#])
        second.report([HealthCheck("b", ok: true)])
        first.report([HealthCheck("a", ok: true), HealthCheck("c", ok: true)])
        first.report([HealthCheck("a", ok: false, advice: "do something")])
        // Events of a backend keep their order, so the reports have arrived when these readers are known.
        first.add(ReaderDescription(name: "1"))
        second.add(ReaderDescription(name: "2"))
        _ = await (client.next("READER"), client.next("READER"))
        #expect(
            await client.exchange(#"{"cmd":"GET_HEALTH","request":1}"#) == [
                #"{"checks":[{"advice":"do something","name":"a","ok":false},{"name":"b","ok":true}],"msg":"HEALTH","request":1}"#
            ]
        )
    }

    @Test("answers keep the order of the commands while health checks run")
    @Loop func healthInOrder() async throws {
        let fixture = try await Fixture(at: .idle)
        let answers = await fixture.client.exchange(
            #"{"cmd":"GET_HEALTH","request":1}"#,
            #"{"cmd":"GET_STATUS","request":2}"#,
            #"{"cmd":"GET_HEALTH","request":3}"#,
            #"{"cmd":"NO","request":4}"#
        )
        #expect(answers.map { $0["request"]?.int } == [1, 2, 3, 4])
    }
}

@Suite("Permissions", .timeLimit(.minutes(5)))
struct PermissionTests {
    private static let readers: Set<String> = ["GET_READER", "GET_READER_LIST", "GET_HEALTH", "GET_METRICS"]
    private static let cards: Set<String> = [
        "RUN_AUTH", "GET_ACCESS_RIGHTS", "SET_ACCESS_RIGHTS", "GET_CERTIFICATE", "ACCEPT", "RUN_CHANGE_PIN", "SET_PIN",
        "SET_NEW_PIN",
        "SET_CAN", "SET_PUK", "SET_CARD", "CANCEL", "CONTINUE", "IDENTIFY_CARD", "RECORD_CARD",
    ]
    private static let agent: Set<String> = ["SET_USER_INTERFACE"]
    /// Commands that only connections of the browser port may send.
    private static let browserPort: Set<String> = ["ACTIVATE"]
    private static let scan: Set<String> = [
        "START_SCAN", "STOP_SCAN", "GET_SCAN", "GET_DOOR_READER_LIST", "GET_CLOSEST_DOOR_READER",
    ]
    /// Commands that need the permission `scan`, too.
    private static let open: Set<String> = ["OPEN_READER", "TRIGGER", "ALLOW_OPEN", "SET_TIMEOUTS", "SET_AUTO_OPEN"]

    private static let admin: Set<String> = ["ADD_READER_KEY", "REMOVE_READER_KEY", "GET_READER_KEYS"]

    @Test("a command without its permission is ACCESS_DENIED at every moment", arguments: allCommands)
    @Loop func denied(_ name: String) async throws {
        let needed: [(Permissions, Set<String>)] = [
            (.readers, Self.readers), (.cards, Self.cards), (.scan, Self.scan), ([.scan, .open], Self.open),
            (.agent, Self.agent), (.activate, Self.browserPort), (.openings, ["START_OPENINGS", "STOP_OPENINGS"]),
            (.admin, Self.admin),
        ]
        let table =
            ([
                [], .readers, .cards, .agent, .scan, .open, .openings, [.scan, .admin], [.scan, .open], .activate, .all,
            ]
            as [Permissions]).map {
                permissions in
                (permissions, isAllowed: needed.allSatisfy { permissions.isSuperset(of: $0) || !$1.contains(name) })
            }
        for (permissions, isAllowed) in table {
            let server = try await TestServer(permissions: permissions)
            let client = try server.connect()
            let answers = await client.exchange(#"{"cmd":"\#(name)","request":"r"}"#)
            let denial = answers.first { $0["msg"] == .string("ACCESS_DENIED") }
            #expect((denial == nil) == isAllowed, "\(permissions.rawValue)")
            guard let denial else { continue }
            #expect(denial["error"] == .string(name) && denial["request"] == .string("r"))
            // The words of [access], with which a client says what to change.
            let needed = needed.filter { $1.contains(name) }.reduce(into: Permissions()) { $0.formUnion($1.0) }
            #expect(denial["missing"] == .array(needed.subtracting(permissions).words.map { .string($0) }))
            #expect(denial["granted"] == .array(permissions.words.map { .string($0) }))
        }
    }

    @Test("a client without the permission `readers` receives no READER events")
    @Loop func silence() async throws {
        let server = try await TestServer(permissions: [.cards])
        let client = try server.connect()
        let waiting = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD", "READER")
        #expect(waiting == #"{"msg":"INSERT_CARD"}"#)
        #expect(
            await client.ask(#"{"cmd":"SET_CARD","name":"Simulator"}"#, "ENTER_PIN", "READER")?["msg"]
                == .string("ENTER_PIN")
        )
    }

    @Test("a command that does not exist is UNKNOWN_COMMAND, not ACCESS_DENIED")
    @Loop func unknown() async throws {
        let server = try await TestServer(permissions: [])
        let client = try server.connect()
        #expect(await client.exchange(#"{"cmd":"GET_LOG"}"#) == [#"{"error":"GET_LOG","msg":"UNKNOWN_COMMAND"}"#])
    }
}

extension JSON {
    static func readerList(_ readers: JSON...) -> JSON {
        .object([.init("msg", .string("READER_LIST")), .init("readers", .array(readers.map { $0.with("msg", nil) }))])
    }
}
