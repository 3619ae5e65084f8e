// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import Activation

/// Two recordings hold no messages, but remarks about connections: an attempt, and the answer of AusweisApp2.
@Suite("Connections, compared with AusweisApp2 1.26.2", .timeLimit(.minutes(5)))
struct PeerHandshakeTests {
    /// A remark of a recording: an attempt and its outcome.
    struct Remark: Sendable {
        let attempt: String
        let outcome: String

        /// Those of `sim-handshake`: `# ATTEMPT -> ANSWER`, the lines of the answer between bars.
        static let handshakes: [Remark] = read("sim-handshake").compactMap { remark in
            guard let arrow = remark.firstRange(of: " -> ") else { return nil }
            return Remark(attempt: String(remark[..<arrow.lowerBound]), outcome: String(remark[arrow.upperBound...]))
        }

        static func read(_ name: String) -> [String] {
            let text =
                FileManager.default.contents(
                    atPath: testsFolder.appending(path: "Vectors/peer-transcripts/\(name).txt").path
                ) ?? Data()
            return String(decoding: text, as: UTF8.self).split(separator: "\n").compactMap { line in
                line.firstRange(of: "# ").map { String(line[$0.upperBound...]) }
            }
        }
    }

    /// The answer of badged to the same attempt.
    struct Answer: Sendable {
        let request: String
        /// nil: no answer before the time for a request is over.
        let status: String?
        /// Headers that both send.
        var headers: [String] = []
        /// Why badged answers differently; nil when it answers the same.
        var difference: String?
    }

    private static func request(_ method: String, _ target: String, _ headers: [String] = []) -> String {
        (["\(method) \(target) HTTP/1.1", "Host: localhost"] + headers + ["", ""]).joined(separator: "\r\n")
    }

    private static let upgrade = TestBrowserPort.upgradeHeaders
    private static let onePort = "AusweisApp2 without a window does not serve browsers; badged serves both at one port"
    private static let pages = "a web page must not reach the card, whatever name it uses for this computer"

    static let answers: [String: Answer] = [
        "GET / plain": Answer(request: request("GET", "/"), status: "404 Not Found", difference: onePort),
        "GET /eID-Kernel plain": Answer(
            request: request("GET", "/eID-Kernel"),
            status: "426 Upgrade Required",
            difference: onePort
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
            difference: onePort
        ),
        "GET /eID-Client?Status=json": Answer(
            request: request("GET", "/eID-Client?Status=json"),
            status: "200 OK",
            difference: onePort
        ),
        "garbage": Answer(
            request: "\u{0}\u{1}garbage\r\n\r\n",
            status: nil,
            difference: nil
        ),
        "POST": Answer(
            request: request("POST", "/eID-Kernel", ["Content-Length: 0"]),
            status: "426 Upgrade Required",
            difference: onePort
        ),
    ]

    @Test("each recorded handshake has the same answer, except for the named differences")
    func handshakes() async throws {
        #expect(Remark.handshakes.map(\.attempt).sorted() == Self.answers.keys.sorted())
        let port = try await TestBrowserPort(requestTimeout: 2) { socket, _ in close(socket) }
        for remark in Remark.handshakes {
            let answer = try #require(Self.answers[remark.attempt])
            let text = try await TestBrowserPort.answer { try port.exchange(answer.request) }
            let lines = text.split(separator: "\r\n").map(String.init)
            let peer = remark.outcome.split(separator: " | ").map(String.init)
            func status(_ lines: [String]) -> String? {
                lines.first.flatMap { $0.hasPrefix("HTTP/") ? String($0.dropFirst("HTTP/1.x ".count)) : nil }
            }
            #expect(status(lines) == answer.status, "\(remark.attempt)")
            #expect((status(peer) == answer.status) == (answer.difference == nil), "\(remark.attempt)")
            for header in answer.headers { #expect(lines.contains(header) && peer.contains(header)) }
        }
    }

    /// A named difference: AusweisApp2 has one place, and refuses others with 429 even when the first is silent.
    @Test("many programs at once, one after the other, and beside silent ones are served")
    @Loop func clients() async throws {
        let remarks = Remark.read("sim-clients")
        let refused = remarks.filter { $0.hasSuffix("handshake: HTTP/1.0 429 Too Many Requests") }
        #expect(refused.count == 3 && remarks.contains("refused 20 times in 20 s"))
        let server = try await TestServer()
        let port = try TestBrowserPort(server)
        let silent = try ["", "GET /eID"].map { try TestBrowserPort.begin($0, port: port.port) }
        var together = [try await port.connect()]
        for _ in refused {
            let client = try await port.connect()
            await client.send(#"{"cmd":"GET_API_LEVEL"}"#)
            #expect(await client.next("API_LEVEL") != nil)
            together.append(client)
        }
        for client in together { client.close() }
        let rounds = try #require(remarks.first { $0.hasPrefix("20 rounds: 20 answers") })
        #expect(rounds.hasSuffix("[\(Array(repeating: "1", count: 20).joined(separator: ", "))]"))
        for _ in 0..<20 {
            let client = try await port.connect()
            await client.send(#"{"cmd":"GET_API_LEVEL"}"#)
            #expect(await client.next("API_LEVEL") != nil)
            client.close()
        }
        for socket in silent { close(socket) }
    }
}
