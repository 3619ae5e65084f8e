// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Foundation
import HTTP
import TestSupport
import Testing

@testable import badgectl

@Suite("badgectl metrics", .timeLimit(.minutes(5))) struct MetricsTests {
    private static let metrics = #"""
        {"metrics":[{"help":"A \\ B","name":"badged_a_total","samples":[{"labels":{"kind":"x\"y"},"value":3}],"type":"counter"},{"help":"H","name":"badged_h_seconds","samples":[{"buckets":[{"count":1,"le":0.5}],"count":2,"sum":7.5}],"type":"histogram"},{"help":"none","name":"badged_none","samples":[],"type":"gauge"}],"msg":"METRICS"}
        """#
    private static let health =
        #"{"checks":[{"name":"pcscd","ok":true},{"name":"nfc a","ok":true},{"name":"nfc b","ok":false}],"msg":"HEALTH"}"#

    private static func peer() throws -> ScriptedPeer {
        try ScriptedPeer { peer in
            peer.answer("GET_METRICS", metrics)
            peer.answer("GET_HEALTH", health)
        }
    }

    @Test("the text format has each family in one piece, and the checks of devices under one word")
    func text() async throws {
        let peer = try Self.peer()
        defer { withExtendedLifetime(peer) {} }
        let program = try badgectl(peer, "metrics")
        #expect(await program.exitCode == 0)
        #expect(
            program.text(.output) == #"""
                # HELP badged_up Whether badged answers.
                # TYPE badged_up gauge
                badged_up 1
                # HELP badged_a_total A \\ B
                # TYPE badged_a_total counter
                badged_a_total{kind="x\"y"} 3
                # HELP badged_h_seconds H
                # TYPE badged_h_seconds histogram
                badged_h_seconds_bucket{le="0.5"} 1
                badged_h_seconds_bucket{le="+Inf"} 2
                badged_h_seconds_sum 7.5
                badged_h_seconds_count 2
                # HELP badged_health_check_ok Whether a check of badgectl health is good.
                # TYPE badged_health_check_ok gauge
                badged_health_check_ok{check="nfc"} 0
                badged_health_check_ok{check="pcscd"} 1

                """#
        )
    }

    @Test("OpenMetrics names counters without their suffix, and ends with EOF")
    func openMetrics() async throws {
        let peer = try Self.peer()
        defer { withExtendedLifetime(peer) {} }
        let program = try badgectl(peer, "metrics", "--openmetrics")
        #expect(await program.exitCode == 0)
        let text = program.text(.output)
        #expect(
            text.contains("# TYPE badged_a counter\nbadged_a_total{kind=\"x\\\"y\"} 3\n") && text.hasSuffix("\n# EOF\n")
        )
    }

    @Test("without badged the file says so alone, and no temporary file stays")
    func down() async throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/badged.prom"
        let program = try RunningProgram("badgectl", ["metrics", "--socket", folder.path + "/none", "--output", file])
        #expect(await program.exitCode == 0)
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(text.hasSuffix("\nbadged_up 0\n") && text.split(separator: "\n").count == 3)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["badged.prom"])
        let wrong = try RunningProgram("badgectl", ["metrics", "--socket", "/none", "--output", "/nowhere/a.prom"])
        #expect(await wrong.exitCode == 1)
    }

    @Test(
        "requests over HTTP",
        arguments: [
            (
                "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
                MetricsRequest.Answer.metrics(isOpen: false, withBody: true)
            ),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", .metrics(isOpen: false, withBody: false)),
            (
                "GET /metrics?x=1 HTTP/1.0\r\naccept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n",
                .metrics(isOpen: true, withBody: true)
            ),
            ("GET / HTTP/1.1\r\n\r\n", .refused(.notFound)),
            ("POST /metrics HTTP/1.1\r\n\r\n", .refused(.methodNotAllowed)),
            (
                "GET http://localhost:9837/metrics HTTP/1.1\r\nHost: [::1]\r\n\r\n",
                .metrics(isOpen: false, withBody: true)
            ),
            ("HEAD HTTPS://[::1]/metrics?x HTTP/1.1\r\n\r\n", .metrics(isOpen: false, withBody: false)),
            ("GET http://localhost HTTP/1.1\r\n\r\n", .refused(.notFound)),
            ("GET http:///metrics HTTP/1.1\r\n\r\n", .refused(.badRequest)),
            ("GET ftp://a/metrics HTTP/1.1\r\n\r\n", .refused(.badRequest)),
            ("GET metrics HTTP/1.1\r\n\r\n", .refused(.badRequest)),
            (accept("text/plain, application/openmetrics-text;q=0"), .metrics(isOpen: false, withBody: true)),
            (accept("application/openmetrics-text; Q=0.000"), .metrics(isOpen: false, withBody: true)),
            (accept("application/openmetrics-text;q=0.5,text/plain;q=0.7"), .metrics(isOpen: false, withBody: true)),
            (accept("application/openmetrics-text;q=0.5,text/*;q=0.2"), .metrics(isOpen: true, withBody: true)),
            (accept("Application/OpenMetrics-Text ; version=1.0.0 ; q=1"), .metrics(isOpen: true, withBody: true)),
            (
                accept("text/plain;q=0.1\r\nAccept: application/openmetrics-text"),
                .metrics(isOpen: true, withBody: true)
            ),
            (accept("*/*"), .metrics(isOpen: false, withBody: true)),
            (
                accept(
                    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
                        + "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
                ), .metrics(isOpen: true, withBody: true)
            ),
            ("GET /metrics HTTP/1.1\r\nX-Name: M\u{FC}ller\r\n\r\n", .metrics(isOpen: false, withBody: true)),
            ("GET /metrics HTTP/1.1\r\nA: b\r\n c\r\n\r\n", .refused(.badRequest)),
            ("GET /metrics HTTP/1.1\r\nA : b\r\n\r\n", .refused(.badRequest)),
            ("GET /metrics HTTP/1.1\r\n: b\r\n\r\n", .refused(.badRequest)),
            ("GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", .refused(.badRequest)),
            ("GET /metrics HTTP/1.1\r\nA: b\u{0}\r\n\r\n", .refused(.badRequest)),
            ("GET /m\u{E9} HTTP/1.1\r\n\r\n", .refused(.badRequest)),
            ("GET /metrics\r\n\r\n", .refused(.badRequest)), ("\u{0}\r\n\r\n", .refused(.badRequest)),
        ]
    )
    func http(request: String, answer: MetricsRequest.Answer) {
        #expect(MetricsRequest.answer(Array(request.utf8)) == answer)
    }

    @Test(
        "requests are answered under the names of this computer only, so that no web page can have the metrics",
        arguments: [
            ("localhost", true), ("LocalHost:9837", true), ("127.0.0.1", true), ("127.9.9.9:1", true), ("[::1]", true),
            ("[::1]:9837", true), (" localhost ", true), ("metrics.example", true), ("Metrics.Example:80", true),
            ("a", false), ("evil.example", false), ("evil.example:9837", false), ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false), ("[::2]", false), ("10.0.0.1", false), ("localhost:x", false),
            ("localhost@evil.example", false), ("evil.example#localhost", false), ("", false),
            ("xmetrics.example", false), ("localhost, evil.example", false), ("127.1", false),
        ]
    )
    func hosts(name: String, isAnswered: Bool) {
        let expected: MetricsRequest.Answer =
            isAnswered ? .metrics(isOpen: false, withBody: true) : .refused(.forbidden)
        for request in [
            "GET /metrics HTTP/1.1\r\nHost: \(name)\r\n\r\n", "GET /metrics HTTP/1.0\r\nhost:\(name)\r\n\r\n",
        ] {
            #expect(MetricsRequest.answer(Array(request.utf8), hosts: ["metrics.example"]) == expected)
        }
        let other = "GET http://localhost/metrics HTTP/1.1\r\nHost: \(name)\r\n\r\n"
        #expect(MetricsRequest.answer(Array(other.utf8), hosts: ["metrics.example"]) == expected)
    }

    @Test("a refused method names those that are allowed, and no other answer does")
    func allowed() {
        let refused = MetricsRequest.response(.methodNotAllowed, "text/plain", "")
        #expect(refused.hasPrefix("HTTP/1.1 405 Method Not Allowed\r\n"))
        #expect(refused.contains("\r\nAllow: GET, HEAD\r\n"))
        for status in [MetricsRequest.Status.ok, .badRequest, .forbidden, .notFound] {
            #expect(!MetricsRequest.response(status, "text/plain", "").contains("Allow:"))
        }
    }

    @Test("a second Host, or a foreign name in the target, is refused")
    func twoHosts() {
        let two = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
        #expect(MetricsRequest.answer(Array(two.utf8)) == .refused(.badRequest))
        let target = "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        #expect(MetricsRequest.answer(Array(target.utf8)) == .refused(.forbidden))
    }

    private static func accept(_ value: String) -> String { "GET /metrics HTTP/1.1\r\nAccept: \(value)\r\n\r\n" }

    @Test("bytes of a header above 7F are accepted, also when they are not UTF-8", arguments: 0x80...0xFF)
    func latin1(byte: Int) {
        let request = Array("GET /metrics HTTP/1.1\r\nX-Name: M".utf8) + [UInt8(byte)] + Array("ller\r\n\r\n".utf8)
        #expect(MetricsRequest.answer(request) == .metrics(isOpen: false, withBody: true))
    }
}
