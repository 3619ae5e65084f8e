// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import Activation

/// Two recordings tell of connections instead of messages, in remarks: what was tried, and how the peer's port answered.
@Suite("How AusweisApp2 1.26.2 takes connections", .timeLimit(.minutes(5)))
struct PeerHandshakeTests {
    /// A remark of a recording: what was tried, and what came of it.
    struct Remark: Sendable {
        let attempt: String
        let outcome: String

        /// Those of `sim-handshake`: `# ATTEMPT -> ANSWER`, the lines of the answer between bars.
        static let handshakes: [Remark] = read("sim-handshake").compactMap { remark in
            guard let arrow = remark.firstRange(of: " -> ") else { return nil }
            return Remark(attempt: String(remark[..<arrow.lowerBound]), outcome: String(remark[arrow.upperBound...]))
        }

        static func read(_ name: String) -> [String] {
            let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
            let text = FileManager.default.contents(atPath: "/\(folder)/Vectors/peer-transcripts/\(name).txt") ?? Data()
            return String(decoding: text, as: UTF8.self).split(separator: "\n").compactMap { line in
                line.firstRange(of: "# ").map { String(line[$0.upperBound...]) }
            }
        }
    }

    /// How badged's door answers the same.
    struct Answer: Sendable {
        let request: String
        let status: String
        /// Headers that both send.
        var headers: [String] = []
        /// Why badged does it differently; nil where it does the same.
        var difference: String?
    }

    private static func request(_ method: String, _ target: String, _ headers: [String] = []) -> String {
        (["\(method) \(target) HTTP/1.1", "Host: localhost"] + headers + ["", ""]).joined(separator: "\r\n")
    }

    private static let upgrade = WebSocketDoor.upgradeHeaders
    private static let oneDoor = "the peer without a window serves no browsers; badged has one door for both"
    private static let pages = "a web page must not speak to the card, whatever name it gives this computer"

    static let answers: [String: Answer] = [
        "GET / plain": Answer(request: request("GET", "/"), status: "404 Not Found", difference: oneDoor),
        "GET /eID-Kernel plain": Answer(
            request: request("GET", "/eID-Kernel"),
            status: "426 Upgrade Required",
            difference: oneDoor
        ),
        "upgrade on /": Answer(request: request("GET", "/", upgrade), status: "404 Not Found"),
        "upgrade on /other": Answer(request: request("GET", "/other", upgrade), status: "404 Not Found"),
        "upgrade with foreign Origin": Answer(
            request: request("GET", "/eID-Kernel", ["Origin: https://example.invalid"] + upgrade),
            status: "403 Forbidden",
            difference: pages
        ),
        "upgrade with foreign Host": Answer(
            request: request("GET", "/eID-Kernel", upgrade)
                .replacing("Host: localhost", with: "Host: example.invalid"),
            status: "403 Forbidden",
            difference: pages
        ),
        "version 8": Answer(
            request: request("GET", "/eID-Kernel", upgrade).replacing("Version: 13", with: "Version: 8"),
            status: "400 Bad Request",
            headers: ["Sec-WebSocket-Version: 13"]
        ),
        "GET /eID-Client?Status": Answer(
            request: request("GET", "/eID-Client?Status"),
            status: "200 OK",
            difference: oneDoor
        ),
        "GET /eID-Client?Status=json": Answer(
            request: request("GET", "/eID-Client?Status=json"),
            status: "200 OK",
            difference: oneDoor
        ),
        "garbage": Answer(
            request: "\u{0}\u{1}garbage\r\n\r\n",
            status: "403 Forbidden",
            difference: "the peer waits for more; what is no HTTP will not become it"
        ),
        "POST": Answer(
            request: request("POST", "/eID-Kernel", ["Content-Length: 0"]),
            status: "426 Upgrade Required",
            difference: oneDoor
        ),
    ]

    @Test("each handshake of the recording is answered as by the peer, but for the named differences")
    func handshakes() async throws {
        #expect(Remark.handshakes.map(\.attempt).sorted() == Self.answers.keys.sorted())
        let door = try await WebSocketDoor { close($0) }
        for remark in Remark.handshakes {
            let answer = try #require(Self.answers[remark.attempt])
            let text = try await WebSocketDoor.answer { try door.exchange(answer.request) }
            let lines = text.split(separator: "\r\n").map(String.init)
            let peer = remark.outcome.split(separator: " | ").map(String.init)
            func status(_ lines: [String]) -> String? { lines.first.map { String($0.dropFirst("HTTP/1.x ".count)) } }
            #expect(status(lines) == answer.status, "\(remark.attempt)")
            #expect((status(peer) == answer.status) == (answer.difference == nil), "\(remark.attempt)")
            for header in answer.headers { #expect(lines.contains(header) && peer.contains(header)) }
        }
    }

    /// Named difference "everybody has a place": the peer has one, and whoever holds it, even in silence, keeps all
    /// others out with 429.
    @Test("programs that come together, one after the other, and beside a silent one, where the peer refuses")
    @Loop func clients() async throws {
        let remarks = Remark.read("sim-clients")
        let refused = remarks.filter { $0.hasSuffix("handshake: HTTP/1.0 429 Too Many Requests") }
        #expect(refused.count == 3 && remarks.contains("refused 20 times in 20 s"))
        let server = try TestServer()
        let door = try WebSocketDoor(server)
        // In silence: one that says nothing at all, and one that said no more than that it is there.
        let silent = try ["", "GET /eID"].map { try WebSocketDoor.begin($0, port: door.port) }
        var together = [try door.connect()]
        for _ in refused {
            let client = try door.connect()
            await client.send(#"{"cmd":"GET_API_LEVEL"}"#)
            #expect(await client.next("API_LEVEL") != nil)
            together.append(client)
        }
        for client in together { client.close() }
        let rounds = try #require(remarks.first { $0.hasPrefix("20 rounds: 20 answers") })
        #expect(rounds.hasSuffix("[\(Array(repeating: "1", count: 20).joined(separator: ", "))]"))
        for _ in 0..<20 {
            let client = try door.connect()
            await client.send(#"{"cmd":"GET_API_LEVEL"}"#)
            #expect(await client.next("API_LEVEL") != nil)
            client.close()
        }
        for socket in silent { close(socket) }
    }
}
