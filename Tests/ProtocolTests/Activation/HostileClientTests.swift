// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import Server
import Synchronization
import TestSupport
import Testing

@testable import Activation

@Suite("Hostile clients of the browser port", .timeLimit(.minutes(5)))
struct HostileClientTests {
    private let port: TestBrowserPort

    init() async throws { port = try await Self.makePort() }

    private static let status = "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\n\r\n"

    /// A browser port without a daemon.
    @Loop private static func makePort(requestTimeout: UInt32 = 10) throws -> TestBrowserPort {
        try TestBrowserPort(requestTimeout: requestTimeout) { socket, _ in close(socket) }
    }

    /// Who has opened a connection with this port of its own.
    private final class Users: Sendable {
        private let byPort = Mutex<[UInt16: UInt32]>([:])

        subscript(port: UInt16) -> UInt32? { byPort.withLock { $0[port] } }

        /// Opens a connection of a user without sending anything, as the port sees it only after it is accepted.
        func begin(_ user: UInt32, _ port: UInt16, _ request: String = "") throws -> Int32 {
            let own = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = LoopbackSocket.address(port: 0)
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isConnected = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    guard bind(own, pointer, size) == 0, getsockname(own, pointer, &size) == 0 else { return false }
                    let number = pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee.sin_port }
                    byPort.withLock { $0[UInt16(bigEndian: number)] = user }
                    var server = LoopbackSocket.address(port: port)
                    return withUnsafePointer(to: &server) {
                        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(own, $0, size) == 0 }
                    }
                }
            }
            guard isConnected else { throw SystemError("connect") }
            BlockingSocket.send(request.utf8, to: own)
            return own
        }

        /// The answer to a request for the status.
        func status(_ user: UInt32, _ port: UInt16) throws -> String {
            let own = try begin(user, port, HostileClientTests.status)
            defer { close(own) }
            var answer: [UInt8] = []
            while let piece = BlockingSocket.receive(from: own) { answer += piece }
            return String(decoding: answer, as: UTF8.self)
        }
    }

    @Test("a browser is answered while others keep all places, and each loses its oldest silent connection first")
    func greed() async throws {
        let users = Users()
        // No connection ends by itself.
        let port = try await TestBrowserPort(requestTimeout: 240, user: { users[$0] }) { socket, _ in close(socket) }
        let number = port.port
        let texts = try await TestBrowserPort.answer {
            let share = ActivationServer.maximumPerUser
            // More than one user may have, of each of several who together have more than there are places.
            var held: [UInt32: [Int32]] = [:]
            for user in UInt32(1)...6 {
                for _ in 0..<(share + 10) { held[user, default: []].append(try users.begin(user, number, "GET /eID")) }
            }
            defer { for socket in held.values.joined() { close(socket) } }
            let answers = try (1...7).map { try users.status($0, number) }
            // The newest connection of a user goes on, and the oldest one was closed.
            for sockets in held.values {
                #expect(BlockingSocket.receive(from: sockets[0]) == nil)
                BlockingSocket.send("-Client?Status HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8, to: sockets[share + 9])
                let text = BlockingSocket.receive(from: sockets[share + 9]).map { String(decoding: $0, as: UTF8.self) }
                #expect(text?.hasPrefix("HTTP/1.1 200 OK\r\n") == true)
            }
            return answers.joined(separator: "|")
        }
        #expect(texts.split(separator: "|").count == 7)
        #expect(texts.split(separator: "|").allSatisfy { $0.hasPrefix("HTTP/1.1 200 OK\r\n") }, "\(texts)")
    }

    @Test("closed connections do not count for the limit")
    func many() async throws {
        _ = try await TestBrowserPort.answer {
            for _ in 0..<(2 * ActivationServer.maximumConnections) {
                let text = try port.exchange(Self.status)
                #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
            }
            return ""
        }
    }

    @Test(
        "an unfinished request is closed after its timeout",
        arguments: ["", "GET /eID", "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\nX-"]
    )
    func slow(start: String) async throws {
        let port = try await Self.makePort(requestTimeout: 1)
        #expect(try await TestBrowserPort.answer { try port.exchange(start) } == "")
    }

    @Test("a CONNECT request is refused and its connection closed")
    func connect() async throws {
        let request = "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        // The exchange ends when the port closes the connection.
        #expect(try await !TestBrowserPort.answer { try port.exchange(request) }.contains(" 200 "))
    }

    @Test(
        "a request inside another request is not answered",
        arguments: [
            "POST /eID-Client HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\n\r\n",
            "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ]
    )
    func smuggled(request: String) async throws {
        let text = try await TestBrowserPort.answer { try port.exchange(request + Self.status) }
        #expect(text.split(separator: "HTTP/1.1 ").count == 1, "\(text)")
    }

    @Test(
        "a Host header that names another host is refused, also beside a right one",
        arguments: [
            "Host: localhost\r\nHost: evil.example", "Host: evil.example\r\nHost: localhost",
            "Host:\r\nHost: localhost", "Accept: y", "Host: localhost, evil.example",
        ]
    )
    func hosts(headers: String) async throws {
        let request = "GET /eID-Client?Status HTTP/1.1\r\n\(headers)\r\n\r\n"
        let text = try await TestBrowserPort.answer { try port.exchange(request) }
        #expect(text.hasPrefix("HTTP/1.1 403 Forbidden\r\n"), "\(text)")
    }

    @Test("a request head above 16 KiB is refused")
    func largeHead() async throws {
        // The port reads the rest of such a request until the timeout.
        let port = try await Self.makePort(requestTimeout: 1)
        let long = String(repeating: "a", count: 20_000)
        for request in ["GET /eID-Client?x=\(long) HTTP/1.1\r\n", "GET / HTTP/1.1\r\nX: \(long)\r\n"] {
            let text = try await TestBrowserPort.answer {
                // The port may close the connection before all of it is sent.
                (try? port.exchange(request)) ?? ""
            }
            #expect(text == "" || text.hasPrefix("HTTP/1.1 431 ") || text.hasPrefix("HTTP/1.1 414 "), "\(text)")
        }
    }

    /// The names begin as names of headers that programs use, and are none of them.
    @Test(
        "a header whose name begins like another one is a header like any other, and hides nothing",
        arguments: [
            "X-A", "X-F", "X-R", "If", "U", "Re", "Sec", "User", "Content", "Proxy", "H", "Ho", "Hos", "O", "Origi",
            "Connectio", "Upgrad", "Sec-WebSocket-Ke", "Accep", "Cooki", "Transfer-Encodin",
        ]
    )
    func prefixes(name: String) async throws {
        for headers in ["\(name): 1\r\nHost: localhost", "Host: localhost\r\n\(name): 1"] {
            let request = "GET /eID-Client?Status HTTP/1.1\r\n\(headers)\r\n\r\n"
            let text = try await TestBrowserPort.answer { try port.exchange(request) }
            #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"), "\(headers): \(text)")
        }
        let upgrade = ["\(name): 1", "Origin: https://evil.example"] + TestBrowserPort.upgradeHeaders
        let text = try await TestBrowserPort.answer { try port.get("/eID-Kernel", headers: upgrade) }
        #expect(text.hasPrefix("HTTP/1.1 403 "), "\(name): \(text)")
    }

    @Test(
        "empty lines before a request are skipped, and folded lines and names that are no token are refused",
        arguments: [
            ("\r\nGET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\n\r\n", "200 OK"),
            ("\r\n\r\nGET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\n\r\n", "200 OK"),
            ("GET /eID-Client?Status HTTP/1.1\r\nX: a\r\n b\r\nHost: localhost\r\n\r\n", "200 OK"),
            ("GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\nX: a\r\n\tHost: a\r\n\r\n", "400 Bad Request"),
            ("GET /eID-Client?Status HTTP/1.1\r\nHost: local\r\n host\r\n\r\n", "403 Forbidden"),
            ("GET /eID-Client?Status HTTP/1.1\r\nX: a\r\n Host: localhost\r\n\r\n", "400 Bad Request"),
            ("GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\nHost : a\r\n\r\n", "400 Bad Request"),
            ("GET /eID-Client?Status HTTP/1.1\r\nHost: local\0host\r\n\r\n", "403 Forbidden"),
            ("GET /eID-Client?Status HTTP/1.1\nHost: localhost\n\n", "200 OK"),
        ]
    )
    func lines(request: String, status: String) async throws {
        let text = try await TestBrowserPort.answer { try port.exchange(request) }
        #expect(text.hasPrefix("HTTP/1.1 \(status)\r\n"), "\(text)")
    }

    /// A frame of a client: its first byte, its mask and its payload.
    private static func frame(_ first: UInt8, _ payload: String, isMasked: Bool = true) -> [UInt8] {
        let mask: [UInt8] = isMasked ? [1, 2, 3, 4] : [0, 0, 0, 0]
        let bytes = payload.utf8.enumerated().map { $1 ^ mask[$0 & 3] }
        return [first, UInt8(payload.utf8.count) | (isMasked ? 0x80 : 0)] + (isMasked ? mask : []) + bytes
    }

    @Test(
        "frames that violate RFC 6455 end the connection with a close frame that has its code",
        arguments: [
            (frame(0x81, "{}", isMasked: false), 1002), (frame(0xC1, "{}"), 1002), (frame(0x80, "{}"), 1002),
            (frame(0x83, "{}"), 1002), (frame(0x09, "{}"), 1002), (frame(0x01, "{") + frame(0x81, "}"), 1002),
            ([0x88, 0x82, 1, 2, 3, 4, 0x03 ^ 1, 0xE8 ^ 2], 1000), (frame(0x88, ""), 1000),
        ] as [([UInt8], UInt16)]
    )
    func frames(bytes: [UInt8], code: UInt16) async throws {
        let port = try await TestBrowserPort { socket, _ in Self.keep(socket) }
        let lines = ["GET /eID-Kernel HTTP/1.1", "Host: localhost"] + TestBrowserPort.upgradeHeaders + ["", ""]
        // In one write, so that frames also arrive together with the handshake.
        let answer = try await TestBrowserPort.bytes {
            try TestBrowserPort.exchange(Array(lines.joined(separator: "\r\n").utf8) + bytes, port: port.port)
        }
        #expect(String(decoding: answer.prefix(12), as: UTF8.self) == "HTTP/1.1 101")
        #expect(Array(answer.suffix(4)) == [0x88, 2, UInt8(code >> 8), UInt8(code & 0xFF)])
    }

    /// Lets the daemon's end of a connection open for the rest of the test process.
    private static func keep(_ socket: Int32) {}

    @Test("a ping is answered with its payload, between the fragments of a message too")
    @Loop func ping() async throws {
        let server = try await TestServer()
        let port = try TestBrowserPort(server)
        let number = port.port
        let lines = ["GET /eID-Kernel HTTP/1.1", "Host: localhost"] + TestBrowserPort.upgradeHeaders + ["", ""]
        let frames =
            Self.frame(0x01, #"{"cmd":"GET_"#) + Self.frame(0x89, "hello") + Self.frame(0x80, #"API_LEVEL"}"#)
            + Self.frame(0x88, "")
        let answer = try await TestBrowserPort.bytes {
            try TestBrowserPort.exchange(Array(lines.joined(separator: "\r\n").utf8) + frames, port: number)
        }
        #expect(answer.firstRange(of: [0x8A, 5] + Array("hello".utf8)) != nil)
    }

    @Test("a client that sends pings and reads nothing is not read, and gets every answer when it reads")
    @Loop func unreadPings() async throws {
        let port = try TestBrowserPort { socket, _ in Self.keep(socket) }
        let socket = try await TestBrowserPort.upgraded(port.port)
        defer { close(socket) }
        // What the kernel holds is small then.
        func hold(_ size: Int32, _ options: [Int32]) {
            for option in options {
                _ = withUnsafePointer(to: size) {
                    setsockopt(socket, SOL_SOCKET, option, $0, socklen_t(MemoryLayout<Int32>.size))
                }
            }
        }
        hold(4096, [SO_SNDBUF, SO_RCVBUF])
        let ping = Self.frame(0x89, String(repeating: "x", count: 125))
        let pings = [[UInt8]](repeating: ping, count: 512).flatMap { $0 }
        let most = 256 * pings.count
        var sent = 0
        // The port is on this thread, too: it has had many turns when nothing is taken any more.
        var idleTurns = 0
        while idleTurns < 1000, sent < most {
            let rest = pings[(sent % pings.count)...]
            let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT)) }
            if count > 0 {
                sent += count
                idleTurns = 0
            } else {
                idleTurns += 1
                await Task.yield()
            }
        }
        #expect(sent < most)
        hold(1 << 20, [SO_RCVBUF])
        let length = sent / ping.count * 127
        let answers = try await TestBrowserPort.bytes {
            var answers: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while answers.count < length, case let count = recv(socket, &buffer, buffer.count, 0), count > 0 {
                answers += buffer[..<count]
            }
            return answers
        }
        #expect(answers.count == length)
    }
}
