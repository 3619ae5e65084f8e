// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Concurrency
import Secrets
import TestSupport
import Testing
import Text
import Wire

private let info = #"{"VersionInfo":{"Name":"badged","Implementation-Version":"9"},"msg":"INFO"}"#

/// A connection to a peer that plays `script`; the peer must be kept.
private func connect(
    keepsEvents: Bool = true,
    _ script: @escaping @Sendable (ScriptedPeer.Connection) -> Void
) async throws -> (ScriptedPeer, DaemonConnection) {
    let peer = try ScriptedPeer(script)
    return (peer, try await DaemonConnection.connect(to: peer.path, keepsEvents: keepsEvents))
}

@Suite("Connection", .timeLimit(.minutes(5))) struct DaemonConnectionTests {
    @Test("a command goes out with a request, and the answer that carries it comes back")
    func request() async throws {
        let (peer, connection) = try await connect { peer in
            peer.send(#"{"msg":"READER","name":"other","attached":false}"#)
            peer.answer("GET_INFO", info)
            peer.answer("GET_READER", #"{"msg":"READER","name":"R","attached":true,"card":{}}"#)
        }
        #expect(try await connection.info() == DaemonInfo(name: "badged", version: "9"))
        #expect(try await connection.reader(named: "R").card == .unknown)
        var events = connection.events.makeAsyncIterator()
        #expect(await events.next()?.message == .reader(Reader(name: "other", isAttached: false)))
        #expect(await events.next() == nil)
        let received = await peer.received()
        #expect(received.count == 2)
        #expect(received.allSatisfy { (try? JSON($0.utf8))?["request"]?.string != nil })
        #expect(try JSON((received.last ?? "").utf8)["name"] == .string("R"))
    }

    @Test("a badged that serves nobody more says so to the first question")
    func notServed() async throws {
        let (server, path) = try await Self.fullServer()
        let connection = try await DaemonConnection.connect(to: path)
        await #expect(throws: ClientError.notServed("Cannot process request")) { try await connection.info() }
        #expect(connection.ending == .notServed("Cannot process request"))
        withExtendedLifetime(server) {}
    }

    @Test("an internal error behind other messages is not taken for a refusal of the connection")
    func lateError() async throws {
        let (peer, connection) = try await connect { peer in
            peer.answer("GET_INFO", info)
            peer.send(#"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#)
        }
        _ = try await connection.info()
        for await _ in connection.events {}
        #expect(connection.ending == .closed)
        _ = await peer.received()
    }

    @Loop private static func fullServer() throws -> (TestServer, String) {
        let server = try TestServer(maximumClients: 0)
        return (server, try server.listen())
    }

    @Test("answers find their askers in whatever order they come")
    func correlation() async throws {
        let (peer, connection) = try await connect { peer in
            let commands = [peer.command(), peer.command(), peer.command()].compactMap { $0 }
            for command in commands.reversed() {
                peer.send(
                    #"{"attached":false,"msg":"READER","name":"\#(command["name"]?.string ?? "")"}"#,
                    answering: command
                )
            }
        }
        let names = ["a", "b", "c"]
        let answers = try await withThrowingTaskGroup(of: (String, String).self) { group in
            for name in names { group.addTask { (name, try await connection.reader(named: name).name) } }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(answers == ["a": "a", "b": "b", "c": "c"])
        _ = await peer.received()
    }

    @Test(
        "without a daemon the error says so, and what to do",
        arguments: ["/nowhere/at/all.sock", "/dev/null/x.sock"]
    )
    func notRunning(path: String) async {
        let error = await #expect(throws: ClientError.self) { try await DaemonConnection.connect(to: path) }
        #expect(error == .notRunning(path: path))
        #expect(error?.advice.contains("systemctl start badged") == true)
    }

    @Test("a socket file that nobody listens on any more means the same")
    func dead() async throws {
        var peer: ScriptedPeer? = try ScriptedPeer { _ in }
        let path = try #require(peer?.path)
        let first = try await DaemonConnection.connect(to: path)
        _ = await peer?.received()
        first.close()
        peer = nil
        await #expect(throws: ClientError.notRunning(path: path)) { try await DaemonConnection.connect(to: path) }
    }

    @Test("a path that no socket can have is refused", arguments: ["", "/" + String(repeating: "x", count: 107)])
    func invalidPath(path: String) async {
        await #expect(throws: ClientError.invalidPath(path)) { try await DaemonConnection.connect(to: path) }
    }

    @Test("a file that is no socket cannot be connected to")
    func noSocket() async {
        let error = await #expect(throws: ClientError.self) { try await DaemonConnection.connect(to: "/dev/null") }
        #expect(error == .notRunning(path: "/dev/null"))
    }

    @Test(
        "a refusal is an error of its own kind",
        arguments: [
            (#"{"error":"GET_READER_LIST","msg":"ACCESS_DENIED"}"#, .accessDenied(command: "GET_READER_LIST")),
            (#"{"error":"GET_READER_LIST","msg":"BAD_STATE"}"#, .badState(command: "GET_READER_LIST")),
            (#"{"error":"GET_READER_LIST","msg":"UNKNOWN_COMMAND"}"#, .unknownCommand("GET_READER_LIST")),
            (#"{"error":"Invalid name","msg":"READER"}"#, .refused("Invalid name")),
            (#"{"error":"Unexpected condition","msg":"INTERNAL_ERROR"}"#, .refused("Unexpected condition")),
            (#"{"msg":"STATUS"}"#, .unexpectedAnswer("STATUS")),
            (#"{"msg":"READER_LIST"}"#, .unexpectedAnswer("READER_LIST")),
        ] as [(String, ClientError)]
    )
    func refusals(message: String, expected: ClientError) async throws {
        let (peer, connection) = try await connect { $0.answer("GET_READER_LIST", message) }
        await #expect(throws: expected) { try await connection.readers() }
        _ = await peer.received()
    }

    @Test("when the daemon goes, requests fail, what came before is still read, and the events end")
    func closedByPeer() async throws {
        let (peer, connection) = try await connect { peer in
            peer.command("GET_INFO")
            peer.send(#"{"msg":"INSERT_CARD"}"#)
        }
        await #expect(throws: ClientError.closed) { try await connection.info() }
        var names: [String] = []
        for await event in connection.events { names.append(event.name) }
        #expect(names == ["INSERT_CARD"])
        #expect(connection.ending == .closed)
        await #expect(throws: ClientError.closed) { try await connection.info() }
        await #expect(throws: ClientError.closed) { try await connection.cancel() }
        _ = await peer.received()
    }

    @Test("closing ends the events and requests of this side, and the daemon sees it")
    func closedByUs() async throws {
        let (peer, connection) = try await connect { peer in
            peer.command("GET_INFO")
            peer.send(#"{"msg":"PAUSE","cause":"BadCardPosition"}"#)
            peer.untilClosed()
        }
        let request = Task { try await connection.info() }
        var events = connection.events.makeAsyncIterator()
        #expect(await events.next()?.message == .pause(cause: "BadCardPosition"))
        connection.close()
        #expect(await events.next() == nil)
        await #expect(throws: ClientError.closed) { try await request.value }
        _ = await peer.received()
    }

    @Test("a connection that nobody holds is closed")
    func released() async throws {
        let peer: ScriptedPeer
        do {
            let (kept, connection) = try await connect { $0.untilClosed() }
            try await connection.cancel()
            peer = kept
        }
        #expect(await peer.commands() == ["CANCEL"])
    }

    @Test(
        "what is not JSON lines ends the connection with an error that says so",
        arguments: [
            ("HTTP/1.1 400 Bad Request\r\n\r\n", "illegal value (offset: 1)"),
            ("{\"msg\":\n", "unterminated object (offset: 7)"),
            ("[]\n", "a line is not an object"),
            (String(repeating: "x", count: LineBuffer.maximumLine + 2), "a line is longer than 1048576 bytes"),
        ]
    )
    func malformed(text: String, cause: String) async throws {
        let (peer, connection) = try await connect { peer in
            peer.command("GET_INFO")
            peer.send(raw: text)
            peer.untilClosed()
        }
        await #expect(throws: ClientError.malformed(cause)) { try await connection.info() }
        for await event in connection.events { Issue.record("an event: \(event)") }
        _ = await peer.received()
    }

    @Test("a cancelled task gets its error at once; the late answer is an event, and the connection goes on")
    func cancelled() async throws {
        let (peer, connection) = try await connect { peer in
            let late = peer.command("GET_INFO")
            peer.send(#"{"msg":"INSERT_CARD"}"#)
            peer.command("CANCEL")
            peer.send(info, answering: late)
            peer.answer("GET_READER_LIST", #"{"msg":"READER_LIST","readers":[]}"#)
        }
        let request = Task { try await connection.info() }
        var events = connection.events.makeAsyncIterator()
        #expect(await events.next()?.name == "INSERT_CARD")
        request.cancel()
        await #expect(throws: ClientError.cancelled) { try await request.value }
        try await connection.cancel()
        #expect(await events.next()?.name == "INFO")
        #expect(try await connection.readers() == [])
        _ = await peer.received()
    }

    @Test("a cancelled reader of events loses none")
    func cancelledReader() async throws {
        let (peer, connection) = try await connect { peer in
            peer.command("CANCEL")
            for number in 1...3 { peer.send(#"{"msg":"UNKNOWN_COMMAND","error":"\#(number)"}"#) }
        }
        let reader = Task {
            for await event in connection.events { Issue.record("an event: \(event)") }
        }
        reader.cancel()
        await reader.value
        try await connection.cancel()
        var numbers: [String] = []
        for await event in connection.events {
            if case .unknownCommand(let number) = event.message { numbers.append(number) }
        }
        #expect(numbers == ["1", "2", "3"])
        _ = await peer.received()
    }

    @Test("events that nobody reads are bounded: the socket fills, requests fail, and reading makes it good again")
    func unread() async throws {
        let count = 40
        let (peer, connection) = try await connect { peer in
            let padding = String(repeating: "x", count: 100_000)
            for number in 0..<count { peer.send(#"{"msg":"UNKNOWN_COMMAND","error":"\#(number)","x":"\#(padding)"}"#) }
            peer.answer("GET_INFO", info)
        }
        // Sooner or later, but without anybody reading.
        await #expect(throws: ClientError.unreadEvents) { try await connection.info() }
        var numbers: [Int] = []
        for await event in connection.events {
            if case .unknownCommand(let number) = event.message, let number = Int(number) { numbers.append(number) }
        }
        #expect(numbers == Array(0..<count))
        _ = await peer.received()
    }

    @Test("who does not want events gets answers however many events come")
    func withoutEvents() async throws {
        let (peer, connection) = try await connect(keepsEvents: false) { peer in
            let padding = String(repeating: "x", count: 100_000)
            for _ in 0..<40 { peer.send(#"{"msg":"X","x":"\#(padding)"}"#) }
            peer.answer("GET_INFO", info)
        }
        #expect(try await connection.info().version == "9")
        _ = await peer.received()
    }

    @Test("more than the socket takes at once arrives whole and in order")
    func large() async throws {
        let (peer, connection) = try await connect { $0.untilClosed() }
        let text = String(repeating: "y", count: 500_000)
        for number in 0..<4 {
            try await connection.send("X", [.init("n", .string("\(number)")), .init("t", .string(text))])
        }
        connection.close()
        let received = await peer.received()
        #expect(received.map { (try? JSON($0.utf8))?["n"]?.string } == ["0", "1", "2", "3"])
        #expect(received.allSatisfy { $0.utf8.count > 500_000 })
    }

    @Test(
        "a secret is the value of its command, whatever bytes it has",
        arguments: [
            (.pin, "123456", #""value":"123456"}"#), (.newPIN, "000000", #""value":"000000"}"#),
            (.can, "1\"2\\3\n", #""value":"1\u00222\u005c3\u000a"}"#), (.puk, "", #""value":""}"#),
        ] as [(SecretKind, String, String)]
    )
    func secrets(kind: SecretKind, text: String, end: String) async throws {
        let (peer, connection) = try await connect { peer in _ = peer.line() }
        let question = SecretQuestion(kind: kind, reader: Reader(name: "R"), number: 7)
        try await connection.answer(question, Secret(text.utf8))
        let line = try #require(await peer.received().first)
        #expect(line.hasPrefix("{\"cmd\":\"\(kind.command)\",\"request\":\""))
        #expect(line.hasSuffix(",\"question\":7," + end))
        #expect(try JSON(line.utf8)["value"] == .string(text))
    }

    @Test("for a reader with keypad the command has no value")
    func keypad() async throws {
        let (peer, connection) = try await connect { peer in _ = peer.line() }
        try await connection.answer(SecretQuestion(kind: .pin, reader: Reader(name: "R", hasKeypad: true)), nil)
        let line = try JSON(try #require(await peer.received().first).utf8)
        #expect(line["cmd"] == .string("SET_PIN"))
        #expect(line["value"] == nil)
    }

    @Test("commands have the members of the protocol")
    func members() async throws {
        let (peer, connection) = try await connect { peer in for _ in 0..<7 { _ = peer.line() } }
        try await connection.startChangePIN()
        try await connection.startChangePIN(reader: "R 1", status: false)
        try await connection.setCard(in: "S", card: .object([.init("keypad", .bool(true))]))
        try await connection.cancel()
        try await connection.continueWorkflow()
        try await connection.send(raw: Secret("{\"cmd\":\"X\"}\r\nnonsense\n".utf8))
        let received = await peer.received()
        let withoutRequest = received.map { line -> String in
            guard let members = (try? JSON(line.utf8))?.members else { return line }
            return String(decoding: JSON.object(members.filter { $0.key != "request" }).bytes, as: UTF8.self)
        }
        #expect(
            withoutRequest == [
                #"{"cmd":"RUN_CHANGE_PIN"}"#, #"{"cmd":"RUN_CHANGE_PIN","reader":"R 1","status":false}"#,
                #"{"cmd":"SET_CARD","name":"S","card":{"keypad":true}}"#, #"{"cmd":"CANCEL"}"#,
                #"{"cmd":"CONTINUE"}"#, #"{"cmd":"X"}"#, "nonsense",
            ]
        )
    }

    @Test("the refusal of a command without answer is an event that answers it")
    func refusedCommand() async throws {
        let (peer, connection) = try await connect { peer in
            peer.answer("CANCEL", #"{"error":"CANCEL","msg":"BAD_STATE"}"#)
        }
        let id = try await connection.cancel()
        var events = connection.events.makeAsyncIterator()
        let event = try #require(await events.next())
        #expect(event.answers(id))
        #expect(event.message == .badState(command: "CANCEL"))
        _ = await peer.received()
    }
}
