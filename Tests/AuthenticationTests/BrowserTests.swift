// SPDX-License-Identifier: GPL-3.0-or-later
import EIDServer
import FoundationEssentials
import Glibc
import TestSupport
import Testing
import Text
import Wire

/// A browser, the programs badged, badged-activation and badgectl, a virtual card and an eID-Server: the whole way.
@Suite("A browser starts an online authentication", .timeLimit(.minutes(5)))
struct BrowserTests {
    private let eidServer: EIDServer
    private let daemon: RunningDaemon
    private let port: UInt16

    init() async throws {
        eidServer = try EIDServer()
        port = try TestBrowserPort.freePort()
        let folder = "/tmp/badged-test-browser-\(UInt32.random(in: .min ... .max))"
        try FileManager.default.createDirectory(atPath: folder + "/test", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data(eidServer.authority.root).write(to: URL(filePath: folder + "/test/cvca.cvcert"))
        let configuration = "[eid]\ntrust_anchors=\(folder)\n[activation]\nenabled=yes\nport=\(port)\n"
        try Data(configuration.utf8).write(to: URL(filePath: folder + "/badged.conf"))
        daemon = try await RunningDaemon(["--config", folder + "/badged.conf"])
    }

    private func get(_ url: String) async throws -> String {
        let (port, request) = (port, request(url))
        return try await TestBrowserPort.answer { try TestBrowserPort.exchange(request, port: port) }
    }

    private func request(_ url: String) -> String {
        let target = url.utf8.map { byte in
            "-._~".utf8.contains(byte) || Character(UnicodeScalar(byte)).isLetter
                || Character(UnicodeScalar(byte)).isNumber
                ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        return "GET /eID-Client?tcTokenURL=\(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n"
    }

    @Test("the agent shows who asks, takes consent and PIN, and the browser is sent back to the service; twice")
    func whole() async throws {
        defer { eidServer.stop() }
        let agent = try RunningProgram("badgectl", ["--socket", daemon.path, "agent"], hasTerminal: true)
        #expect(await agent.says("Waiting for browsers.", on: .output))
        for _ in 0..<2 {
            async let answer = get(try eidServer.tcTokenURL())
            #expect(await agent.says("Agree? "))
            agent.type("y\n")
            #expect(await agent.says("PIN: "))
            agent.type("123456\n")
            let head = try await answer
            let session = try #require(eidServer.report()?["session"]?.string)
            #expect(head.hasPrefix("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 303 See Other\r\n"))
            #expect(head.contains("/refresh/\(session)?ResultMajor=ok\r\n"), "\(head)")
            #expect(eidServer.report()?["outcome"] == .string("ok"))
            #expect(await agent.says("Waiting for browsers.", on: .output))
        }
        agent.signal(SIGINT)
        #expect(await agent.exitCode == 130)
        #expect(try await get(try eidServer.tcTokenURL()).hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
    }

    @Test("a second badged for the same port asks the first to show itself, says so, and does the rest")
    func secondInstance() async throws {
        defer { eidServer.stop() }
        let agent = try RunningProgram("badgectl", ["--socket", daemon.path, "agent"], hasTerminal: true)
        #expect(await agent.says("Waiting for browsers.", on: .output))
        let path = "/tmp/badged-test-browser-\(UInt32.random(in: .min ... .max)).conf"
        defer { unlink(path) }
        try Data("[activation]\nenabled=yes\nport=\(port)\n".utf8).write(to: URL(filePath: path))
        let second = try await RunningDaemon(["--config", path])
        #expect(await agent.says("A browser has asked this program to show itself.", on: .output))
        #expect(await second.program.says("(TR-03124-1/1.4), which was asked to show itself", on: .error))
        agent.signal(SIGINT)
        #expect(await agent.exitCode == 130)
    }

    @Test("a browser that leaves ends what it began, the service hears of it, and the agent goes on")
    func left() async throws {
        defer { eidServer.stop() }
        let agent = try RunningProgram("badgectl", ["--socket", daemon.path, "agent"], hasTerminal: true)
        #expect(await agent.says("Waiting for browsers.", on: .output))
        let browser = try TestBrowserPort.begin(request(try eidServer.tcTokenURL()), port: port)
        #expect(await agent.says("Agree? "))
        close(browser)
        #expect(await agent.says("the browser could not be reached (Browser_Send_Failed)", on: .output))
        #expect(await agent.says("Waiting for browsers.", on: .output))
        #expect(eidServer.report()?["outcome"]?.string?.contains("cancellationByUser") == true)
        agent.signal(SIGINT)
        #expect(await agent.exitCode == 130)
    }

    @Test("a user who does not agree sends the browser back with the reason, and the agent goes on")
    func declined() async throws {
        defer { eidServer.stop() }
        let agent = try RunningProgram("badgectl", ["--socket", daemon.path, "agent"], hasTerminal: true)
        #expect(await agent.says("Waiting for browsers.", on: .output))
        async let answer = get(try eidServer.tcTokenURL())
        #expect(await agent.says("Agree? "))
        agent.type("n\n")
        #expect(try await answer.contains("ResultMajor=error&ResultMinor=cancellationByUser\r\n"))
        #expect(await agent.says("not agreed: the service got no data", on: .output))
        #expect(await agent.says("Waiting for browsers.", on: .output))
        agent.signal(SIGINT)
        #expect(await agent.exitCode == 130)
    }
}
