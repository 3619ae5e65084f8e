// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import TestSupport
import Testing

@testable import Activation

@Suite("The rules of the browser port", .timeLimit(.minutes(5)))
struct RulesTests {
    private let rules = ActivationRules(
        origins: ["https://app.example"],
        port: 24727,
        identity: TestBrowserPort.identity
    )

    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    /// RFC 6455, 1.3.
    private static let upgrade = ActivationDecision.upgrade(accept: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")

    /// The request that opens a WebSocket.
    private static func webSocket(host: String? = "localhost", origin: String? = nil) -> ActivationRequest {
        ActivationRequest(
            .get,
            "/eID-Kernel",
            host: host,
            origin: origin,
            webSocketVersion: "13",
            webSocketKey: key
        )
    }

    private func status(_ request: ActivationRequest) -> Int? {
        switch rules.decide(request) {
        case .answer(let answer), .refuse(let answer, _): answer.status
        case .authenticate, .showUserInterface, .upgrade: nil
        }
    }

    @Test(
        "a header whose name is no token is a bad request, as a folded line is",
        arguments: [" folded", "a b", "a\t", "", "a:", "a\u{FC}", "a(b", "a\0"]
    )
    func headers(name: String) {
        let target = Array("/eID-Client?Status".utf8)
        let good = [(name: "Host", value: "localhost"), (name: "X-!#$%&'*+.^_`|~9", value: "\u{FC}")]
        #expect(status(ActivationRequest("GET", target: target, headers: good)) == 200)
        #expect(status(ActivationRequest("GET", target: target, headers: good + [(name: name, value: "x")])) == 400)
    }

    @Test(
        "the three names of this computer are accepted, with and without a port",
        arguments: ["localhost", "LOCALHOST:24727", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:24727"]
    )
    func ownNames(host: String) {
        #expect(status(ActivationRequest(.get, "/eID-Client", arguments: ["Status"], host: host)) == 200)
        #expect(rules.decide(Self.webSocket(host: host)) == Self.upgrade)
    }

    @Test(
        "another host name is refused",
        arguments: [
            nil, "", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:", "localhost:x",
            "localhost:99999", "127.0.0.1@evil.example", "[::1].evil.example", "[::2]",
        ]
    )
    func otherNames(host: String?) {
        for arguments in [["Status"], ["tcTokenURL=https://a.example"], ["ShowUI"]] {
            #expect(status(ActivationRequest(.get, "/eID-Client", arguments: arguments, host: host)) == 403)
        }
        #expect(status(Self.webSocket(host: host)) == 403)
    }

    @Test(
        "a web page may open a WebSocket only when its origin is allowed",
        arguments: [
            (nil, nil), ("https://app.example", nil), ("http://app.example", 403), ("https://app.example:444", 403),
            ("https://app.example.evil.example", 403), ("null", 403), ("", 403),
            // Libraries such as websocket-client send the address to which they connect.
            ("http://localhost:24727", nil), ("http://127.0.0.1:24727", nil), ("http://[::1]:24727", nil),
            ("http://LocalHost:24727", nil), ("https://localhost:24727", 403), ("http://localhost", 403),
            ("http://localhost:8080", 403), ("http://localhost:247271", 403), ("http://127.0.0.2:24727", 403),
            ("http://localhost:24727.evil.example", 403), ("http://evil.example:24727", 403),
        ] as [(String?, Int?)]
    )
    func origin(origin: String?, refusal: Int?) {
        var request = Self.webSocket(origin: origin)
        #expect(status(request) == refusal)
        // In a browser this port has no pages.
        request.isOfBrowser = true
        #expect(status(request) == (origin == nil || origin == "https://app.example" ? nil : 403))
        guard let origin, refusal != nil, case .refuse(_, let reason) = rules.decide(request) else { return }
        #expect(reason.hasPrefix("WebSocket refused: Origin '\(origin)' is "))
    }

    @Test("the default port of http is left out of the origin")
    func portOfScheme() {
        let rules = ActivationRules(port: 80, identity: TestBrowserPort.identity)
        for (origin, isAllowed) in [("http://localhost", true), ("http://localhost:80", false)] {
            #expect((rules.decide(Self.webSocket(origin: origin)) == Self.upgrade) == isAllowed)
        }
    }

    @Test(
        "the first known argument counts, in upper and lower case",
        arguments: [
            (
                ["x=1", "TCTOKENURL=https://a.example/?b=c", "Status"],
                .authenticate(tcTokenURL: "https://a.example/?b=c")
            ),
            (["tcTokenURL"], .authenticate(tcTokenURL: "")),
            (["ShowUI=SETTINGS", "tcTokenURL=x"], .showUserInterface(module: "SETTINGS")),
            (["showui"], .showUserInterface(module: "")),
        ] as [([String], ActivationDecision)]
    )
    func arguments(arguments: [String], decision: ActivationDecision) {
        #expect(
            rules.decide(ActivationRequest(.get, "/eID-Client", arguments: arguments, host: "localhost")) == decision
        )
    }

    @Test(
        "other paths and methods have their status",
        arguments: [
            (ActivationRequest(.get, "/", host: "localhost"), 404),
            (ActivationRequest(.get, "/eid-client", arguments: ["Status"], host: "localhost"), 404),
            (ActivationRequest(.get, "/eID-Client", host: "localhost"), 404),
            (ActivationRequest(.get, "/eID-Client", arguments: ["x=Status"], host: "localhost"), 404),
            (ActivationRequest(.other, "/eID-Client", arguments: ["tcTokenURL=x"], host: "localhost"), 404),
            (ActivationRequest(.options, "/eID-Client", host: "localhost", origin: "https://a.example"), 204),
            (ActivationRequest(.head, "/eID-Client", arguments: ["tcTokenURL=x"], host: "localhost"), 204),
            (ActivationRequest(.get, "/eID-Kernel", host: "localhost"), 426),
            (ActivationRequest(.get, "/other", host: "localhost", webSocketVersion: "13", webSocketKey: Self.key), 404),
            (ActivationRequest(.get, "/eID-Kernel", host: "localhost", webSocketVersion: "8"), 400),
            (ActivationRequest(.get, "/eID-Kernel", host: "localhost", webSocketVersion: ""), 400),
            (
                ActivationRequest(
                    .other,
                    "/eID-Kernel",
                    host: "localhost",
                    webSocketVersion: "13",
                    webSocketKey: Self.key
                ), 404
            ),
        ] as [(ActivationRequest, Int)]
    )
    func paths(request: ActivationRequest, status: Int) {
        #expect(self.status(request) == status)
    }

    @Test(
        "each outcome has its status",
        arguments: [
            (.redirect("https://a.example/r?ResultMajor=ok"), 303), (.shown, 200), (.noToken, 404), (.noAddress, 400),
            (.unreachable, 404), (.insecure, 400), (.busy, 409), (.noUserInterface, 503), (.failed, 500),
        ] as [(ActivationOutcome, Int)]
    )
    func ends(outcome: ActivationOutcome, status: Int) {
        let answer = HTTPAnswer.end(outcome, TestBrowserPort.identity)
        #expect(answer.status == status)
        #expect(answer.headers.contains("Server: badged/1.2.3 (TR-03124-1/1.4)"))
        #expect(answer.headers.contains("Location: https://a.example/r?ResultMajor=ok") == (status == 303))
    }

    @Test(
        "a URL with line ends, spaces or other bytes is an error, not a redirect",
        arguments: ["", "https://a.example/\r\nSet-Cookie: a=b", "https://a.example/ b", "https://ä.example", "a\u{0}"]
    )
    func noInjection(url: String) {
        let answer = HTTPAnswer.end(.redirect(url), TestBrowserPort.identity)
        #expect(answer.status == 500)
        #expect(!answer.headers.contains { $0.hasPrefix("Location") || $0.contains("Cookie") })
    }

    @Test(
        "the answers of the daemon to ACTIVATE are read, other messages are not",
        arguments: [
            (#"{"accepted":true,"msg":"ACTIVATION"}"#, .accepted),
            (#"{"msg":"ACTIVATION","url":"https://a.example"}"#, .ended(.redirect("https://a.example"))),
            (#"{"msg":"ACTIVATION"}"#, .ended(.shown)),
            (#"{"error":"Busy","msg":"ACTIVATION"}"#, .ended(.busy)),
            (#"{"error":"No TcToken","msg":"ACTIVATION"}"#, .ended(.noToken)),
            (#"{"error":"Unreachable","msg":"ACTIVATION"}"#, .ended(.unreachable)),
            (#"{"error":"Insecure","msg":"ACTIVATION"}"#, .ended(.insecure)),
            (#"{"error":"No address","msg":"ACTIVATION"}"#, .ended(.noAddress)),
            (#"{"error":"No user interface","msg":"ACTIVATION"}"#, .ended(.noUserInterface)),
            (#"{"error":"?","msg":"ACTIVATION"}"#, .ended(.failed)),
            (#"{"error":"ACTIVATE","msg":"ACCESS_DENIED"}"#, .ended(.failed)),
            (#"{"msg":"READER","name":"a"}"#, nil), ("nonsense", nil),
        ] as [(String, ActivationProgress?)]
    )
    func daemonAnswers(line: String, outcome: ActivationProgress?) {
        #expect(Array(line.utf8).withUnsafeBytes { BrowserExchange.progress(of: $0) } == outcome)
    }

    @Test("the limit of log lines holds in each minute")
    func lineLimit() {
        var limit = LineLimit()
        let first = (0..<1000).filter { _ in limit.mayWrite(at: 59) }
        #expect(first.count == LineLimit.linesPerMinute)
        let second = (0..<1000).filter { _ in limit.mayWrite(at: 60) }
        #expect(second.count == LineLimit.linesPerMinute)
    }

    @Test("line ends in a frame become tabs, so that the frame stays one line")
    func frames() {
        var queue = WipedQueue()
        queue.append(Array("{\r\n\"cmd\":\"a\nb\"}".utf8), BrowserLink.withoutLineEnd)
        queue.drain { bytes in
            #expect(String(decoding: bytes, as: UTF8.self) == "{\t\t\"cmd\":\"a\tb\"}")
            return bytes.count
        }
        let rest = queue.count
        #expect(rest == 0)
    }

    @Test(
        "a request target is read as RFC 9112 writes it, and its escapes are decoded once",
        arguments: [
            ("/eID-Client?tcTokenURL=https%3A%2F%2Fa.example%2F%3Fb%3Dc%2Bd%2526e", "https://a.example/?b=c+d%26e"),
            ("/eID%2DClient?x&&tcTokenURL=a+b%20c%zz%", "a+b c%zz%"),
            ("http://LOCALHOST:24727/eID-Client?tcTokenURL=%61", "a"),
            ("/eID-Client?" + String(repeating: "x&", count: 63) + "tcTokenURL=a", "a"),
        ]
    )
    func targets(target: String, url: String) {
        let request = ActivationRequest("GET", target: Array(target.utf8), headers: [("hOST", "localhost")])
        #expect(rules.decide(request) == .authenticate(tcTokenURL: url))
    }

    @Test(
        "a target that names another host, or more than 64 arguments, is not accepted",
        arguments: [
            ("http://evil.example/eID-Client?Status", 403), ("http://localhost@evil.example/eID-Client?Status", 403),
            ("http:///eID-Client?Status", 403), ("https://localhost/eID-Client?Status", 404), ("*", 404), ("", 404),
            ("/eID-Client?" + String(repeating: "x&", count: 64) + "Status", 404),
        ]
    )
    func wrongTargets(target: String, status: Int) {
        let request = ActivationRequest("GET", target: Array(target.utf8), headers: [("Host", "localhost")])
        #expect(self.status(request) == status)
    }

    @Test(
        "a WebSocket needs the headers of RFC 6455, in any case and order",
        arguments: [
            (["Upgrade: websocket", "Connection: keep-alive, Upgrade"], nil),
            (["upgrade: h2c, WebSocket", "connection: UPGRADE"], nil),
            (["Connection: Upgrade"], 426), (["Upgrade: websocket"], 426),
            (["Upgrade: h2c", "Connection: Upgrade"], 426), (["Upgrade: websocketx", "Connection: Upgrade"], 426),
        ] as [([String], Int?)]
    )
    func handshakes(lines: [String], status: Int?) {
        let headers = lines.map { line in
            (name: String(line.prefix { $0 != ":" }), value: String(line.drop { $0 != ":" }.dropFirst(2)))
        }
        let others = [
            ("Host", "localhost"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", Self.key),
            ("Sec-WebSocket-Protocol", "json, chat"),
        ]
        let request = ActivationRequest("GET", target: Array("/eID-Kernel".utf8), headers: others + headers)
        #expect(self.status(request) == status)
        #expect((rules.decide(request) == Self.upgrade) == (status == nil))
    }

    @Test(
        "a WebSocket without one valid key is refused",
        arguments: [[], ["YWJj"], ["!"], [key, key], [key + "\r\nX: y"]]
    )
    func keys(keys: [String]) {
        let headers = [
            ("Host", "localhost"), ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
        ]
        let target = Array("/eID-Kernel".utf8)
        let request = ActivationRequest(
            "GET",
            target: target,
            headers: headers + keys.map { ("Sec-WebSocket-Key", $0) }
        )
        #expect(status(request) == 400)
    }
}
