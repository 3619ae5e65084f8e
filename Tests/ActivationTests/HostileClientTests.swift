// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing

@testable import Activation

@Suite("Hostile clients of the browser port", .timeLimit(.minutes(5)))
struct HostileClientTests {
    private static let status = "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\n\r\n"

    /// A browser port without a daemon.
    private func makePort(requestTimeout: UInt32 = 10) async throws -> TestBrowserPort {
        try await TestBrowserPort(requestTimeout: requestTimeout) { socket, _ in close(socket) }
    }

    @Test("idle connections count for the limit, and a closed one makes room")
    func bound() async throws {
        let port = try await makePort()
        let text = try await TestBrowserPort.answer {
            var idle = try (0..<ActivationServer.maximumConnections).map { _ in
                try TestBrowserPort.begin("", port: port.port)
            }
            let refused = try port.exchange("")
            #expect(refused == "", "above the limit a connection is closed")
            close(idle.removeFirst())
            defer { for socket in idle { close(socket) } }
            // The port may accept the next connection before it reads the end of the closed one.
            while true {
                if let text = try? port.exchange(Self.status), !text.isEmpty { return text }
            }
        }
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test("closed connections do not count for the limit")
    func many() async throws {
        let port = try await makePort()
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
        let port = try await makePort(requestTimeout: 1)
        #expect(try await TestBrowserPort.answer { try port.exchange(start) } == "")
    }

    @Test("a CONNECT request is refused and its connection closed")
    func connect() async throws {
        let port = try await makePort()
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
        let port = try await makePort()
        let text = try await TestBrowserPort.answer { try port.exchange(request + Self.status) }
        #expect(text.split(separator: "HTTP/1.1 ").count == 1, "\(text)")
    }

    @Test(
        "a Host header that names another host is refused, also beside a right one",
        arguments: [
            "Host: localhost\r\nHost: evil.example", "Host: evil.example\r\nHost: localhost",
            "Host:\r\nHost: localhost", "Accept: y", "Host: localhost, evil.example",
            "Host: evil.example\r\nHost : localhost",
        ]
    )
    func hosts(headers: String) async throws {
        let port = try await makePort()
        let request = "GET /eID-Client?Status HTTP/1.1\r\n\(headers)\r\n\r\n"
        let text = try await TestBrowserPort.answer { try port.exchange(request) }
        #expect(text.hasPrefix("HTTP/1.1 403 Forbidden\r\n"), "\(text)")
    }

    @Test("a request head above 16 KiB is refused")
    func largeHead() async throws {
        let port = try await makePort()
        let long = String(repeating: "a", count: 20_000)
        for request in ["GET /eID-Client?x=\(long) HTTP/1.1\r\n", "GET / HTTP/1.1\r\nX: \(long)\r\n"] {
            let text = try await TestBrowserPort.answer {
                // The port may close the connection before all of it is sent.
                (try? port.exchange(request)) ?? ""
            }
            #expect(text == "")
        }
    }
}
