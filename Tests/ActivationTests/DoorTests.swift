// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Server
import TestSupport
import Testing
import Text
import Wire

@testable import Activation

@Suite("The door for browsers", .timeLimit(.minutes(5)))
@Loop struct DoorTests {
    /// HTTP from a thread of its own, so that the loop and the pool go on.
    private func get(_ door: WebSocketDoor, _ target: String, headers: [String] = []) async throws -> String {
        try await WebSocketDoor.answer { try door.get(target, headers: headers) }
    }

    @Test("?Status tells who is there, as text and as JSON, to any page")
    func status() async throws {
        let server = try TestServer()
        let door = try WebSocketDoor(server)
        let text = try await get(door, "/eID-Client?Status", headers: ["Origin: https://any.example"])
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\nServer: badged/1.2.3 (TR-03124-1/1.4)\r\n"))
        #expect(text.contains("\r\nAccess-Control-Allow-Origin: *\r\n"))
        #expect(text.contains("\r\nAccess-Control-Allow-Private-Network: true\r\n"))
        #expect(text.hasSuffix("\r\n\r\nName: badged\nImplementation-Version: 1.2.3\n"))
        let json = try await get(door, "/eID-Client?STATUS=JSON")
        #expect(json.hasSuffix("\r\n\r\n" + #"{"Name":"badged","Implementation-Version":"1.2.3"}"#))
    }

    @Test("preflight, wrong paths, wrong names of this computer, wrong origins")
    func refusals() async throws {
        let server = try TestServer()
        let door = try WebSocketDoor(server, origins: ["https://app.example"])
        func head(_ request: String) async throws -> String {
            let answer = try await WebSocketDoor.answer { try door.exchange(request) }
            return String(answer.prefix { $0 != "\r\n" })
        }
        func request(_ method: String, _ target: String, _ headers: [String]) -> String {
            (["\(method) \(target) HTTP/1.1"] + headers + ["", ""]).joined(separator: "\r\n")
        }
        let upgrade = WebSocketDoor.upgradeHeaders
        let rows: [(String, String)] = [
            (request("OPTIONS", "/eID-Client", ["Host: localhost"]), "HTTP/1.1 204 No Content"),
            (request("HEAD", "/eID-Client", ["Host: localhost"]), "HTTP/1.1 204 No Content"),
            (request("GET", "/other", ["Host: localhost"]), "HTTP/1.1 404 Not Found"),
            (request("GET", "/eID-Client?Status", ["Host: evil.example"]), "HTTP/1.1 403 Forbidden"),
            (request("GET", "/eID-Kernel", ["Host: evil.example"] + upgrade), "HTTP/1.1 403 Forbidden"),
            (
                request("GET", "/eID-Kernel", ["Host: localhost", "Origin: https://x.example"] + upgrade),
                "HTTP/1.1 403 Forbidden"
            ),
            (request("GET", "/other", ["Host: localhost"] + upgrade), "HTTP/1.1 404 Not Found"),
            (request("GET", "/", ["Host: localhost"] + upgrade), "HTTP/1.1 404 Not Found"),
            (request("GET", "/", ["Host: localhost"]), "HTTP/1.1 404 Not Found"),
            (request("GET", "/eID-Kernel", ["Host: localhost"]), "HTTP/1.1 426 Upgrade Required"),
            (request("POST", "/eID-Client", ["Host: localhost", "Content-Length: 0"]), "HTTP/1.1 404 Not Found"),
        ]
        for (request, answer) in rows { #expect(try await head(request) == answer, "\(request)") }
    }

    @Test("twenty programs at once")
    func clients() async throws {
        let server = try TestServer()
        let door = try WebSocketDoor(server)
        var clients: [TestClient] = []
        for _ in 0..<20 { clients.append(try door.connect()) }
        for client in clients { await client.send(#"{"cmd":"GET_API_LEVEL"}"#) }
        for client in clients { #expect(await client.next("API_LEVEL") != nil) }
        for client in clients { client.close() }
    }

    @Test("a browser waits until the daemon has said where it goes on, and its URL arrives as it was")
    func activation() async throws {
        let daemons = Daemons()
        let door = try WebSocketDoor { daemons.accept($0) }
        async let answer = get(door, "/eID-Client?tcTokenURL=https%3A%2F%2Fa.example%2F%2Fb%3Fc%3Dd%26e%3D%2525%2B")
        let client = await daemons.next()
        #expect(await client.next() == json(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example//b?c=d&e=%25+"}"#))
        await client.send(
            #"{"msg":"READER","name":"x"}"#,
            #"{"accepted":true,"msg":"ACTIVATION"}"#,
            #"{"msg":"ACTIVATION","url":"https://a.example/r?ResultMajor=ok"}"#
        )
        let text = try await answer
        #expect(text.hasPrefix("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 303 See Other\r\n"))
        #expect(text.contains("\r\nLocation: https://a.example/r?ResultMajor=ok\r\n"))
    }

    @Test(
        "who cannot be served hears that at once, and not that something has begun",
        arguments: [
            ("No user interface", "503 Service Unavailable"), ("Busy", "409 Conflict"), ("No TcToken", "404 Not Found"),
        ]
    )
    func refused(error: String, status: String) async throws {
        let daemons = Daemons()
        let door = try WebSocketDoor { daemons.accept($0) }
        async let answer = get(door, "/eID-Client?tcTokenURL=https%3A%2F%2Fa.example")
        let client = await daemons.next()
        _ = await client.next()
        await client.send(#"{"error":"\#(error)","msg":"ACTIVATION"}"#)
        let text = try await answer
        #expect(text.hasPrefix("HTTP/1.1 \(status)\r\n"), "\(text)")
    }

    @Test("what a browser sends behind its request is nothing, and keeps nobody from the answer")
    func behindRequest() async throws {
        let daemons = Daemons()
        let door = try WebSocketDoor { daemons.accept($0) }
        let request = "GET /eID-Client?tcTokenURL=x HTTP/1.1\r\nHost: localhost\r\n\r\n"
        async let answer = WebSocketDoor.answer {
            // In one write, so that the door reads it together.
            try door.exchange(request + request + String(repeating: "x", count: 3000))
        }
        let client = await daemons.next()
        #expect(await client.next()?["cmd"] == .string("ACTIVATE"))
        await client.send(
            #"{"accepted":true,"msg":"ACTIVATION"}"#,
            #"{"msg":"ACTIVATION","url":"https://a.example/r"}"#
        )
        let text = try await answer
        #expect(text.hasPrefix("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 303 See Other\r\n"))
        #expect(text.split(separator: "HTTP/1.1 ").count == 2)
        #expect(await client.next() == nil, "one request, and then the end of the connection")
    }

    @Test("a browser that leaves takes its connection to the daemon with it")
    func browserLeaves() async throws {
        let daemons = Daemons()
        let door = try WebSocketDoor { daemons.accept($0) }
        let request = "GET /eID-Client?tcTokenURL=x HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let browser = try WebSocketDoor.begin(request, port: door.port)
        let client = await daemons.next()
        _ = await client.next()
        close(browser)
        #expect(await client.next() == nil, "the end of the connection")
    }

    @Test("a daemon that goes away, or that cannot take it, ends as an internal error")
    func daemonGone() async throws {
        let daemons = Daemons()
        let door = try WebSocketDoor { daemons.accept($0) }
        async let answer = get(door, "/eID-Client?tcTokenURL=https%3A%2F%2Fa.example")
        var client: TestClient? = await daemons.next()
        _ = await client?.next()
        daemons.forget()
        client = nil
        #expect(try await answer.contains("HTTP/1.1 500 Internal Server Error\r\n"))
    }

    @Test("programs speak the SDK over a WebSocket: each frame a line, each line a frame, any number of them")
    func webSocket() async throws {
        let server = try TestServer()
        try await server.ready()
        let door = try WebSocketDoor(server)
        let clients = try (0..<8).map { _ in try door.connect() }
        for client in clients {
            #expect(await client.next("READER")?["name"] == .string("Simulator"))
            let answers = await client.exchange(
                #"{"cmd":"GET_INFO","request":1}"#,
                #"{"cmd":"GET_READER_LIST"}"#,
                "nonsense"
            )
            #expect(answers.map { $0["msg"]?.string } == ["INFO", "READER_LIST", "INVALID"])
        }
        #expect(server.server.clientCount == 8)
    }

    @Test("a frame of more than a line may have is refused, and the next is heard; nothing is cut on the way")
    func largeFrames() async throws {
        let server = try TestServer()
        let door = try WebSocketDoor(server)
        let client = try door.connect()
        let text = String(repeating: "x", count: 500_000)
        let answers = await client.exchange(
            #"{"cmd":"GET_API_LEVEL","x":""# + String(repeating: "y", count: 1 << 20) + #""}"#,
            #"{"cmd":"GET_API_LEVEL","request":""# + text + #""}"#
        )
        let replies = answers.filter { $0["msg"] != .string("READER") }
        #expect(replies.map { $0["msg"]?.string } == ["INVALID", "API_LEVEL"])
        #expect(replies.last?["request"]?.string == text)
    }

    @Test("what a WebSocket client may do is what the configuration says")
    func permissions() async throws {
        let server = try TestServer()
        let door = try WebSocketDoor(server, permissions: [])
        let answers = await (try door.connect()).exchange(#"{"cmd":"RUN_CHANGE_PIN"}"#, #"{"cmd":"GET_READER_LIST"}"#)
        #expect(answers.map { $0["msg"]?.string } == ["ACCESS_DENIED", "ACCESS_DENIED"])
    }

    @Test("a client that goes away leaves no session")
    func leaving() async throws {
        let server = try TestServer()
        try await server.ready()
        let door = try WebSocketDoor(server)
        var client: TestClient? = try door.connect()
        _ = await client?.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN")
        #expect(server.server.clientCount == 1)
        client = nil
        while server.server.clientCount > 0, !Task.isCancelled { await Task.yield() }
        #expect(server.server.clientCount == 0)
    }

    private func json(_ text: String) -> JSON? { try? JSON(Array(text.utf8)) }
}

/// The daemon's ends of the connections, played by the test.
@Loop private final class Daemons {
    private var clients: [TestClient] = []
    private var waiter: CheckedContinuation<TestClient, Never>?

    nonisolated init() {}

    func accept(_ socket: Int32) {
        guard let client = try? TestClient(socket: socket) else { return }
        clients.append(client)
        waiter?.resume(returning: client)
        waiter = nil
    }

    func next() async -> TestClient {
        if let client = clients.last { return client }
        return await withCheckedContinuation { waiter = $0 }
    }

    func forget() { clients = [] }
}
