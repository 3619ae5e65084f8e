// SPDX-License-Identifier: GPL-3.0-or-later
import EIDServer
import Glibc
import Server
import TestSupport
import Testing
import Text

/// A browser, the programs badged, badged-activation and badgectl, a virtual card and an eID-Server.
@Suite("A browser starts an online authentication", .timeLimit(.minutes(5)))
struct BrowserTests {
    private let eidServer: EIDServer
    private let daemon: RunningDaemon
    private let reserved: ReservedPort
    private var port: UInt16 { reserved.number }

    init() async throws {
        eidServer = try EIDServer()
        reserved = try ReservedPort()
        daemon = try await RunningDaemon.trusting(eidServer, browserPort: reserved.number)
    }

    /// Starts `badgectl agent` in a terminal and waits until it is ready.
    private func startAgent() async throws -> RunningProgram {
        let agent = try RunningProgram("badgectl", ["--socket", daemon.path, "agent"], hasTerminal: true)
        await expectReady(agent)
        return agent
    }

    private func expectReady(_ agent: RunningProgram) async {
        #expect(await agent.prints("Waiting for browsers."))
    }

    /// Ends the agent with Ctrl-C.
    private func interrupt(_ agent: RunningProgram) async {
        #expect(await agent.exitCode(after: SIGINT) == 130)
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

    @Test("the agent takes consent and PIN, and the browser returns to the service; twice")
    func authentication() async throws {
        let agent = try await startAgent()
        for _ in 0..<2 {
            async let answer = get(try eidServer.tcTokenURL())
            #expect(await agent.prints("Agree? ", typing: "y\n"))
            #expect(await agent.prints("PIN: ", typing: "123456\n"))
            let head = try await answer
            let session = try #require(eidServer.report()?["session"]?.string)
            #expect(head.hasPrefix("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 303 See Other\r\n"))
            #expect(head.contains("/refresh/\(session)?ResultMajor=ok\r\n"), "\(head)")
            #expect(eidServer.report()?["outcome"] == .string("ok"))
            await expectReady(agent)
        }
        await interrupt(agent)
        #expect(try await get(try eidServer.tcTokenURL()).hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
    }

    @Test("a second badged with the same port asks the first one to show itself")
    func secondInstance() async throws {
        let agent = try await startAgent()
        let second = try await RunningDaemon(configuration: "[activation]\nenabled=yes\nport=\(port)\n")
        #expect(await agent.prints("A browser has asked this program to show itself."))
        #expect(await second.program.prints("(TR-03124-1/1.4), which was asked to show itself", on: .error))
        await interrupt(agent)
    }

    @Test("a browser that disconnects ends its authentication, and the agent continues")
    func disconnected() async throws {
        let agent = try await startAgent()
        let browser = try TestBrowserPort.begin(request(try eidServer.tcTokenURL()), port: port)
        #expect(await agent.prints("Agree? "))
        close(browser)
        #expect(await agent.prints("the browser could not be reached (Browser_Send_Failed)"))
        await expectReady(agent)
        #expect(eidServer.report()?["outcome"]?.string?.contains("cancellationByUser") == true)
        await interrupt(agent)
    }

    @Test("a user who declines sends the browser back with the reason, and the agent continues")
    func declined() async throws {
        let agent = try await startAgent()
        async let answer = get(try eidServer.tcTokenURL())
        #expect(await agent.prints("Agree? ", typing: "n\n"))
        #expect(try await answer.contains("ResultMajor=error&ResultMinor=cancellationByUser\r\n"))
        #expect(await agent.prints("not agreed: the service got no data"))
        await expectReady(agent)
        await interrupt(agent)
    }
}
