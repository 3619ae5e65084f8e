// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Server
import TestSupport
import Testing
import Text

@testable import Activation

@Suite("The browser port", .timeLimit(.minutes(5)))
@Loop struct BrowserPortTests {
    private let server: TestServer
    private let port: TestBrowserPort

    init() async throws {
        server = try await TestServer()
        port = try TestBrowserPort(server)
    }

    /// Sends a GET request from a thread of its own; the threads of the server stay free.
    private func get(_ port: TestBrowserPort, _ target: String, headers: [String] = []) async throws -> String {
        try await TestBrowserPort.answer { try port.get(target, headers: headers) }
    }

    @Test("?Status answers any page, as text and as JSON")
    func status() async throws {
        let text = try await get(port, "/eID-Client?Status", headers: ["Origin: https://any.example"])
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(text.contains("\r\nServer: badged/1.2.3 (TR-03124-1/1.4)\r\n"))
        #expect(text.contains("\r\nAccess-Control-Allow-Origin: *\r\n"))
        #expect(text.contains("\r\nAccess-Control-Allow-Private-Network: true\r\n"))
        #expect(text.hasSuffix("\r\n\r\nName: badged\nImplementation-Version: 1.2.3\n"))
        let json = try await get(port, "/eID-Client?STATUS=JSON")
        #expect(json.hasSuffix("\r\n\r\n" + #"{"Name":"badged","Implementation-Version":"1.2.3"}"#))
    }

    @Test("each kind of request has its status: preflight, wrong path, wrong host, wrong origin")
    func refusals() async throws {
        let server = try await TestServer()
        let port = try TestBrowserPort(server, origins: ["https://app.example"])
        func head(_ request: String) async throws -> String {
            let answer = try await TestBrowserPort.answer { try port.exchange(request) }
            return String(answer.prefix { $0 != "\r\n" })
        }
        func request(_ method: String, _ target: String, _ headers: [String]) -> String {
            (["\(method) \(target) HTTP/1.1"] + headers + ["", ""]).joined(separator: "\r\n")
        }
        let upgrade = TestBrowserPort.upgradeHeaders
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

    @Test("twenty programs are served at once")
    func clients() async throws {
        var clients: [TestClient] = []
        for _ in 0..<20 { clients.append(try await port.connect()) }
        for client in clients { await client.send(#"{"cmd":"GET_API_LEVEL"}"#) }
        for client in clients { #expect(await client.next("API_LEVEL") != nil) }
        for client in clients { client.close() }
    }

    @Test("a browser waits for the URL of the daemon, and the TcToken URL arrives unchanged")
    func activation() async throws {
        let daemon = FakeDaemon()
        let port = try TestBrowserPort { socket, _ in daemon.accept(socket) }
        async let answer = get(port, "/eID-Client?tcTokenURL=https%3A%2F%2Fa.example%2F%2Fb%3Fc%3Dd%26e%3D%2525%2B")
        let client = await daemon.next()
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
        "a refused browser gets the error at once, without 102 Processing",
        arguments: [
            ("No user interface", "503 Service Unavailable"), ("Busy", "409 Conflict"), ("No TcToken", "404 Not Found"),
        ]
    )
    func refused(error: String, status: String) async throws {
        let daemon = FakeDaemon()
        let port = try TestBrowserPort { socket, _ in daemon.accept(socket) }
        async let answer = get(port, "/eID-Client?tcTokenURL=https%3A%2F%2Fa.example")
        let client = await daemon.next()
        _ = await client.next()
        await client.send(#"{"error":"\#(error)","msg":"ACTIVATION"}"#)
        let text = try await answer
        #expect(text.hasPrefix("HTTP/1.1 \(status)\r\n"), "\(text)")
    }

    @Test("data behind a request is dropped, and the request is answered")
    func behindRequest() async throws {
        let daemon = FakeDaemon()
        let port = try TestBrowserPort { socket, _ in daemon.accept(socket) }
        let request = "GET /eID-Client?tcTokenURL=x HTTP/1.1\r\nHost: localhost\r\n\r\n"
        async let answer = TestBrowserPort.answer {
            // One write, so that the port reads all of it at once.
            try port.exchange(request + request + String(repeating: "x", count: 3000))
        }
        let client = await daemon.next()
        #expect(await client.next()?["cmd"] == .string("ACTIVATE"))
        await client.send(
            #"{"accepted":true,"msg":"ACTIVATION"}"#,
            #"{"msg":"ACTIVATION","url":"https://a.example/r"}"#
        )
        let text = try await answer
        #expect(text.hasPrefix("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 303 See Other\r\n"))
        #expect(text.split(separator: "HTTP/1.1 ").count == 2)
        #expect(await client.next() == nil, "the connection ends after one request")
    }

    @Test("when a browser leaves, its connection to the daemon is closed")
    func browserLeaves() async throws {
        let daemon = FakeDaemon()
        let port = try TestBrowserPort { socket, _ in daemon.accept(socket) }
        let request = "GET /eID-Client?tcTokenURL=x HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let browser = try TestBrowserPort.begin(request, port: port.port)
        let client = await daemon.next()
        _ = await client.next()
        close(browser)
        #expect(await client.next() == nil)
    }

    @Test("the browser gets an internal error when the daemon closes the connection")
    func daemonGone() async throws {
        let daemon = FakeDaemon()
        let port = try TestBrowserPort { socket, _ in daemon.accept(socket) }
        async let answer = get(port, "/eID-Client?tcTokenURL=https%3A%2F%2Fa.example")
        var client: TestClient? = await daemon.next()
        _ = await client?.next()
        daemon.forget()
        client = nil
        #expect(try await answer.contains("HTTP/1.1 500 Internal Server Error\r\n"))
    }

    @Test("while the daemon accepts no connection, browsers get an internal error, and the log is limited")
    func refusedByDaemon() async throws {
        let port = try TestBrowserPort(isRefused: true) { socket, _ in close(socket) }
        // More than the limit in all minutes of this suite.
        let count = 7 * LineLimit.linesPerMinute
        for _ in 0..<count {
            let answer = try await get(port, "/eID-Client?tcTokenURL=https%3A%2F%2Fa.example")
            #expect(answer.contains("HTTP/1.1 500 Internal Server Error\r\n"))
        }
        let lines = port.logged.filter { $0 == "the daemon accepts no connection" }
        #expect(lines.count >= LineLimit.linesPerMinute && lines.count < count)
    }

    @Test("over a WebSocket each frame is a line and each line a frame, for many programs at once")
    func webSocket() async throws {
        var clients: [TestClient] = []
        for _ in 0..<8 { clients.append(try await port.connect()) }
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

    @Test("a frame above the limit of a line is refused, and the next large frame arrives whole")
    func largeFrames() async throws {
        let client = try await port.connect()
        let text = String(repeating: "x", count: 500_000)
        let answers = await client.exchange(
            #"{"cmd":"GET_API_LEVEL","x":""# + String(repeating: "y", count: 1 << 20) + #""}"#,
            #"{"cmd":"GET_API_LEVEL","request":""# + text + #""}"#
        )
        let replies = answers.filter { $0["msg"] != .string("READER") }
        #expect(replies.map { $0["msg"]?.string } == ["INVALID", "API_LEVEL"])
        #expect(replies.last?["request"]?.string == text)
    }

    @Test("a WebSocket client has the permissions of the configuration")
    func permissions() async throws {
        let server = try await TestServer()
        let port = try TestBrowserPort(server, permissions: [])
        let answers = try await port.connect().exchange(#"{"cmd":"RUN_CHANGE_PIN"}"#, #"{"cmd":"GET_READER_LIST"}"#)
        #expect(answers.map { $0["msg"]?.string } == ["ACCESS_DENIED", "ACCESS_DENIED"])
    }

    @Test("the session ends when its WebSocket is closed")
    func leaving() async throws {
        var client: TestClient? = try await port.connect()
        _ = await client?.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN")
        #expect(server.server.clientCount == 1)
        client = nil
        await server.clients(0)
        #expect(server.server.clientCount == 0)
    }

    private func json(_ text: String) -> JSON? { try? JSON(Array(text.utf8)) }
}

/// The daemon, simulated by the test: its ends of the connections.
@Loop private final class FakeDaemon {
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
