// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import TestSupport
import Testing
import Text

@testable import BadgedClient

/// Connects to a peer that plays `script`, and runs `body`.
/// - Returns: the lines that the peer received, in order.
@discardableResult
func withPeer(
    keepsEvents: Bool = true,
    _ script: @escaping @Sendable (ScriptedPeer.Connection) -> Void,
    body: (DaemonConnection) async throws -> Void
) async throws -> [String] {
    let peer = try ScriptedPeer(script)
    let connection = try await DaemonConnection.connect(to: peer.path, keepsEvents: keepsEvents)
    try await body(connection)
    connection.close()
    return await peer.received()
}

/// Messages of the scripted badged.
private enum Message {
    static let info = #"{"VersionInfo":{"Name":"badged","Implementation-Version":"9"},"msg":"INFO"}"#
    static let insertCard = #"{"msg":"INSERT_CARD"}"#
    static let noReaders = #"{"msg":"READER_LIST","readers":[]}"#
    static let unread = #"{"error":"illegal value (offset: 1)","msg":"INVALID"}"#
    static let fault = #"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#
}

@Suite("Connection", .timeLimit(.minutes(5))) struct ConnectionTests {
    // MARK: Connecting

    @Test(
        "Without badged the error says how to start it",
        arguments: ["/nowhere/at/all.sock", "/dev/null/x.sock", "/dev/null"]
    )
    func notRunning(path: String) async {
        let error = await #expect(throws: ClientError.self) { try await DaemonConnection.connect(to: path) }
        #expect(error == .notRunning(path: path))
        #expect(error?.advice.contains("systemctl start badged") == true)
    }

    @Test("A socket file on which no program listens any more gives the same error")
    func abandonedSocket() async throws {
        var peer: ScriptedPeer? = try ScriptedPeer { $0.hangUp() }
        let path = try #require(peer?.path)
        let first = try await DaemonConnection.connect(to: path)
        _ = await peer?.received()
        first.close()
        peer = nil
        await #expect(throws: ClientError.notRunning(path: path)) { try await DaemonConnection.connect(to: path) }
    }

    @Test("A path that no socket can have is refused", arguments: ["", "/" + String(repeating: "x", count: 107)])
    func invalidPath(path: String) async {
        await #expect(throws: ClientError.invalidPath(path)) { try await DaemonConnection.connect(to: path) }
    }

    // MARK: Commands and answers

    @Test("An answer goes to the call that sent the command, other messages are events")
    func request() async throws {
        let received = try await withPeer { peer in
            peer.send(#"{"msg":"READER","name":"other","attached":false}"#)
            peer.answer("GET_INFO", Message.info)
            peer.answer("GET_READER", #"{"msg":"READER","name":"R","attached":true,"card":{}}"#)
            peer.hangUp()
        } body: { connection in
            let info = try await connection.info()
            #expect(info == DaemonInfo(name: "badged", version: "9"))
            let reader = try await connection.reader(named: "R")
            #expect(reader.card == Card())
            var events = connection.events.makeAsyncIterator()
            #expect(await events.next()?.message as? Reader == Reader(name: "other", isAttached: false))
            #expect(await events.next() == nil)
        }
        #expect(received.count == 2)
        #expect(received.allSatisfy { (try? JSON($0.utf8))?["request"]?.string != nil })
        #expect(try JSON((received.last ?? "").utf8)["name"] == .string("R"))
    }

    @Test("Answers find their commands in any order")
    func correlation() async throws {
        try await withPeer { peer in
            let commands = [peer.command(), peer.command(), peer.command()].compactMap { $0 }
            for command in commands.reversed() {
                let name = command["name"]?.string ?? ""
                peer.send(#"{"attached":false,"msg":"READER","name":"\#(name)"}"#, answering: command)
            }
        } body: { connection in
            let answers = try await withThrowingTaskGroup(of: (String, String).self) { group in
                for name in ["a", "b", "c"] {
                    group.addTask { (name, try await connection.reader(named: name).name) }
                }
                return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
            #expect(answers == ["a": "a", "b": "b", "c": "c"])
        }
    }

    @Test(
        "A refusal is an error of its own kind",
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
        try await withPeer {
            $0.answer("GET_READER_LIST", message)
        } body: { connection in
            await #expect(throws: expected) { try await connection.readers() }
        }
    }

    @Test("A command that badged could not read is refused, and the next one is answered")
    func unreadCommand() async throws {
        try await withPeer { peer in
            peer.command("GET_READER_LIST")
            peer.send(Message.unread)
            peer.answer("GET_INFO", Message.info)
        } body: { connection in
            await #expect(throws: ClientError.refused("illegal value (offset: 1)")) { try await connection.readers() }
            #expect((try? await connection.info().version) == "9")
        }
    }

    @Test("The refusal of a command without direct answer is an event that answers it")
    func refusedCommand() async throws {
        try await withPeer { peer in
            peer.answer("CANCEL", #"{"error":"CANCEL","msg":"BAD_STATE"}"#)
        } body: { connection in
            let id = try await connection.cancel()
            var events = connection.events.makeAsyncIterator()
            let event = try #require(await events.next())
            #expect(event.answers(id))
            #expect(event.message.refusal == .badState(command: "CANCEL"))
        }
    }

    @Test("Commands have the members of the protocol")
    func members() async throws {
        let received = try await withPeer { _ in
        } body: { connection in
            try await connection.startChangePIN()
            try await connection.startChangePIN(reader: "R 1", status: false)
            try await connection.setCard(in: "S", card: .object([.init("keypad", .bool(true))]))
            try await connection.cancel()
            try await connection.continueWorkflow()
            try await connection.send(raw: Secret("{\"cmd\":\"X\"}\r\nnonsense\n".utf8))
        }
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

    @Test(
        "A secret is the value of its command, whatever bytes it has",
        arguments: [
            (.pin, "123456", #""value":"123456"}"#), (.newPIN, "000000", #""value":"000000"}"#),
            (.can, "1\"2\\3\n", #""value":"1\u00222\u005c3\u000a"}"#), (.puk, "", #""value":""}"#),
        ] as [(SecretKind, String, String)]
    )
    func secrets(kind: SecretKind, text: String, end: String) async throws {
        let received = try await withPeer { peer in
            _ = peer.line()
        } body: { connection in
            let question = SecretQuestion(kind: kind, reader: Reader(name: "R"), number: 7)
            try await connection.answer(question, Secret(text.utf8))
        }
        let line = try #require(received.first)
        #expect(line.hasPrefix("{\"cmd\":\"\(kind.command)\",\"request\":\""))
        #expect(line.hasSuffix(",\"question\":7," + end))
        #expect(try JSON(line.utf8)["value"] == .string(text))
    }

    @Test("For a reader with keypad the command has no value")
    func keypad() async throws {
        let received = try await withPeer { peer in
            _ = peer.line()
        } body: { connection in
            try await connection.answer(SecretQuestion(kind: .pin, reader: Reader(name: "R", hasKeypad: true)), nil)
        }
        let line = try JSON(try #require(received.first).utf8)
        #expect(line["cmd"] == .string("SET_PIN"))
        #expect(line["value"] == nil)
    }

    @Test("More bytes than the socket takes at once arrive complete and in order")
    func large() async throws {
        let text = String(repeating: "y", count: 500_000)
        let received = try await withPeer { _ in
        } body: { connection in
            for number in 0..<4 {
                try await connection.send("X", [.init("n", .string("\(number)")), .init("t", .string(text))])
            }
        }
        #expect(received.map { (try? JSON($0.utf8))?["n"]?.string } == ["0", "1", "2", "3"])
        #expect(received.allSatisfy { $0.utf8.count > 500_000 })
    }

    // MARK: The end

    @Test("When badged closes, requests fail, earlier events can still be read, and the events end")
    func closedByPeer() async throws {
        try await withPeer { peer in
            peer.command("GET_INFO")
            peer.send(Message.insertCard)
            peer.hangUp()
        } body: { connection in
            await #expect(throws: ClientError.closed) { try await connection.info() }
            var names: [String] = []
            for await event in connection.events { names.append(event.name) }
            #expect(names == ["INSERT_CARD"])
            #expect(connection.ending == .closed)
            await #expect(throws: ClientError.closed) { try await connection.info() }
            await #expect(throws: ClientError.closed) { try await connection.cancel() }
        }
    }

    @Test("Closing ends the events and the requests of this side, and badged sees the end")
    func closedByClient() async throws {
        try await withPeer { peer in
            peer.command("GET_INFO")
            peer.send(Message.insertCard)
        } body: { connection in
            let request = Task { try await connection.info() }
            var events = connection.events.makeAsyncIterator()
            #expect(await events.next()?.name == "INSERT_CARD")
            connection.close()
            #expect(await events.next() == nil)
            await #expect(throws: ClientError.closed) { try await request.value }
        }
    }

    @Test("A connection that nothing refers to is closed")
    func released() async throws {
        let peer = try ScriptedPeer { _ in }
        do {
            let connection = try await DaemonConnection.connect(to: peer.path)
            try await connection.cancel()
        }
        #expect(await peer.commands() == ["CANCEL"])
    }

    @Test("badged that serves no more clients refuses the first request")
    @Loop func notServed() async throws {
        let server = try await TestServer(limits: .own(0))
        let connection = try await DaemonConnection.connect(to: try server.listen())
        await #expect(throws: ClientError.notServed("Cannot process request")) { try await connection.info() }
        #expect(connection.ending == .notServed("Cannot process request"))
        await server.stopListening()
    }

    @Test("An internal error after other messages does not mean that badged serves no more clients")
    func lateError() async throws {
        try await withPeer { peer in
            peer.answer("GET_INFO", Message.info)
            peer.send(Message.fault)
            peer.hangUp()
        } body: { connection in
            _ = try await connection.info()
            for await _ in connection.events {}
            #expect(connection.ending == .closed)
        }
    }

    @Test(
        "Bytes that are not JSON lines end the connection with an error that says so",
        arguments: [
            ("HTTP/1.1 400 Bad Request\r\n\r\n", MalformedLine.noJSON("illegal value (offset: 1)")),
            ("{\"msg\":\n", .noJSON("unterminated object (offset: 7)")), ("[]\n", .noObject),
            (String(repeating: "x", count: LineBuffer.maximumLine + 2), .tooLong),
        ]
    )
    func malformed(text: String, cause: MalformedLine) async throws {
        try await withPeer { peer in
            peer.command("GET_INFO")
            peer.send(raw: text)
        } body: { connection in
            await #expect(throws: ClientError.malformed(cause)) { try await connection.info() }
            for await event in connection.events { Issue.record("an event: \(event)") }
        }
    }

    // MARK: Cancelled tasks

    @Test("A cancelled request fails at once, its late answer is an event, and the connection stays open")
    func cancelledRequest() async throws {
        try await withPeer { peer in
            let late = peer.command("GET_INFO")
            peer.send(Message.insertCard)
            peer.command("CANCEL")
            peer.send(Message.info, answering: late)
            peer.answer("GET_READER_LIST", Message.noReaders)
        } body: { connection in
            let request = Task { try await connection.info() }
            var events = connection.events.makeAsyncIterator()
            #expect(await events.next()?.name == "INSERT_CARD")
            request.cancel()
            await #expect(throws: ClientError.cancelled) { try await request.value }
            try await connection.cancel()
            #expect(await events.next()?.name == "INFO")
            #expect(try await connection.readers() == [])
        }
    }

    @Test("A cancelled task that reads events loses none")
    func cancelledReader() async throws {
        try await withPeer { peer in
            peer.command("CANCEL")
            for number in 1...3 { peer.send(#"{"msg":"UNKNOWN_COMMAND","error":"\#(number)"}"#) }
            peer.hangUp()
        } body: { connection in
            let reader = Task {
                for await event in connection.events { Issue.record("an event: \(event)") }
            }
            reader.cancel()
            await reader.value
            try await connection.cancel()
            var numbers: [String] = []
            for await event in connection.events {
                if let refusal = event.message as? Refusal { numbers.append(refusal.error) }
            }
            #expect(numbers == ["1", "2", "3"])
        }
    }

    // MARK: Unread events

    private static let padding = String(repeating: "x", count: 100_000)

    @Test("With too many unread events requests fail, until the events are read")
    func unread() async throws {
        let count = 40
        try await withPeer { peer in
            for number in 0..<count { peer.send(#"{"msg":"N","n":\#(number),"x":"\#(Self.padding)"}"#) }
            peer.answer("GET_INFO", Message.info)
            peer.hangUp()
        } body: { connection in
            await #expect(throws: ClientError.unreadEvents) { try await connection.info() }
            var numbers: [Int] = []
            for await event in connection.events {
                if let number = event.json["n"]?.int { numbers.append(number) }
            }
            #expect(numbers == Array(0..<count))
        }
    }

    @Test("A connection that keeps no events gets answers however many events arrive")
    func withoutEvents() async throws {
        try await withPeer(keepsEvents: false) { peer in
            for _ in 0..<40 { peer.send(#"{"msg":"X","x":"\#(Self.padding)"}"#) }
            peer.answer("GET_INFO", Message.info)
        } body: { connection in
            let info = try await connection.info()
            #expect(info.version == "9")
        }
    }
}

@Suite("Connections that follow each other", .timeLimit(.minutes(5))) struct ConnectionsTests {
    @Test("After the end of a connection the sequence gives the next one")
    func reconnect() async throws {
        let peer = try ScriptedPeer({ $0.hangUp() }, others: { _ in })
        var iterator = DaemonConnection.connections(to: peer.path).makeAsyncIterator()
        let first = try #require(try await iterator.next())
        for await _ in first.events {}
        #expect(first.ending == .closed)
        let second = try #require(try await iterator.next())
        #expect(second.ending == nil)
    }

    @Test(
        "The pauses grow while badged closes each connection without serving it",
        arguments: [(Message.fault, [1, 2, 4, 4]), (Message.insertCard, [1, 1, 1, 1])]
    )
    func notServed(message: String, milliseconds: [Int]) async throws {
        let script = { @Sendable (peer: ScriptedPeer.Connection) in
            peer.send(message)
            peer.hangUp()
        }
        let peer = try ScriptedPeer(script, others: script)
        let retry = RetryPolicy(firstPause: .milliseconds(1), longestPause: .milliseconds(4))
        var iterator = DaemonConnection.connections(to: peer.path, retry: retry).makeAsyncIterator()
        var pauses: [Duration] = []
        for _ in milliseconds {
            let connection = try #require(try await iterator.next())
            for await _ in connection.events {}
            pauses.append(try #require(iterator.pause))
        }
        #expect(pauses == milliseconds.map { .milliseconds($0) })
    }

    @Test("The sequence ends after the allowed failures, and at once for an error that another try cannot fix")
    func limit() async throws {
        let retry = RetryPolicy(limit: 3, firstPause: .milliseconds(1))
        await #expect(throws: ClientError.notRunning(path: "/nowhere/b.sock")) {
            for try await _ in DaemonConnection.connections(to: "/nowhere/b.sock", retry: retry) {}
        }
        await #expect(throws: ClientError.invalidPath("")) {
            for try await _ in DaemonConnection.connections(to: "") {}
        }
    }

    @Test("A cancelled task ends the sequence during a pause")
    func cancelled() async throws {
        let task = Task {
            for try await _ in DaemonConnection.connections(to: "/nowhere/b.sock") {}
            return "ended"
        }
        task.cancel()
        #expect(try await task.value == "ended")
    }
}
