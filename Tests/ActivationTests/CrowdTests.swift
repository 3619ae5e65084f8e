// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing

@testable import Activation

@Suite("Bad company at the door for browsers", .timeLimit(.minutes(5)))
struct CrowdTests {
    private static let status = "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\n\r\n"

    /// Nobody gets as far as the daemon.
    private func door(headSeconds: UInt32 = 10) async throws -> WebSocketDoor {
        try await WebSocketDoor(headSeconds: headSeconds) { close($0) }
    }

    @Test("connections are counted before they have said anything; who leaves makes room")
    func bound() async throws {
        let door = try await door()
        let text = try await WebSocketDoor.answer {
            var idle = try (0..<ActivationServer.maximumConnections).map { _ in
                try WebSocketDoor.begin("", port: door.port)
            }
            let refused = try door.exchange("")
            #expect(refused == "", "one too many: it is closed")
            close(idle.removeFirst())
            defer { for socket in idle { close(socket) } }
            // The door may see the next one before it sees the end of that one, and refuses it then.
            for _ in 0..<10_000 {
                if let text = try? door.exchange(Self.status), !text.isEmpty { return text }
            }
            return "no room after 10 000 attempts"
        }
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test("any number may come one after the other")
    func many() async throws {
        let door = try await door()
        _ = try await WebSocketDoor.answer {
            for _ in 0..<(2 * ActivationServer.maximumConnections) {
                let text = try door.exchange(Self.status)
                #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
            }
            return ""
        }
    }

    @Test(
        "who does not finish a request is sent away",
        arguments: ["", "GET /eID", "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\nX-"]
    )
    func slow(start: String) async throws {
        let door = try await door(headSeconds: 1)
        #expect(try await WebSocketDoor.answer { try door.exchange(start) } == "")
    }

    @Test("nobody is connected through, and nothing of the kind stays open")
    func connect() async throws {
        let door = try await door()
        let request = "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        // The exchange ends when the door closes the connection.
        #expect(try await !WebSocketDoor.answer { try door.exchange(request) }.contains(" 200 "))
    }

    @Test(
        "a request inside another is none",
        arguments: [
            "POST /eID-Client HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\n\r\n",
            "GET /eID-Client?Status HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ]
    )
    func smuggled(request: String) async throws {
        let door = try await door()
        let text = try await WebSocketDoor.answer { try door.exchange(request + Self.status) }
        #expect(text.split(separator: "HTTP/1.1 ").count == 1, "\(text)")
    }

    @Test(
        "names of this computer are not put together from two headers, nor hidden in one",
        arguments: [
            "Host: localhost\r\nHost: evil.example", "Host: evil.example\r\nHost: localhost",
            "Host:\r\nHost: localhost", "Accept: y", "Host: localhost, evil.example",
            "Host: evil.example\r\nHost : localhost",
        ]
    )
    func hosts(headers: String) async throws {
        let door = try await door()
        let request = "GET /eID-Client?Status HTTP/1.1\r\n\(headers)\r\n\r\n"
        let text = try await WebSocketDoor.answer { try door.exchange(request) }
        #expect(text.hasPrefix("HTTP/1.1 403 Forbidden\r\n"), "\(text)")
    }

    @Test("a head of more than 16 KiB is not read to its end")
    func largeHead() async throws {
        let door = try await door()
        let long = String(repeating: "a", count: 20_000)
        for request in ["GET /eID-Client?x=\(long) HTTP/1.1\r\n", "GET / HTTP/1.1\r\nX: \(long)\r\n"] {
            let text = try await WebSocketDoor.answer {
                // The door may close before all of it is sent.
                (try? door.exchange(request)) ?? ""
            }
            #expect(text == "")
        }
    }
}
