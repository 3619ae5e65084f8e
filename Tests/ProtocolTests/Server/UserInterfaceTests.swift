// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Host
import TestSupport
import Testing
import Text

@testable import Server

@Suite("The user interface for browsers", .timeLimit(.minutes(5)))
@Loop struct UserInterfaceTests {
    private let server: TestServer

    init() async throws { server = try await TestServer() }

    @Test("SET_USER_INTERFACE requires a boolean and returns the current value")
    func values() async throws {
        let client = try server.connect()
        let answers = await client.exchange(
            #"{"cmd":"SET_USER_INTERFACE"}"#,
            #"{"cmd":"SET_USER_INTERFACE","active":1}"#,
            #"{"cmd":"SET_USER_INTERFACE","active":true,"request":7}"#,
            #"{"cmd":"SET_USER_INTERFACE","active":false}"#
        ).filter { $0["msg"] == .string("USER_INTERFACE") }
        #expect(answers.map { $0["active"]?.bool } == [false, false, true, false])
        let errors = ["active is missing: it must be true or false", "active must be true or false", nil, nil]
        #expect(answers.map { $0["error"]?.string } == errors)
        #expect(answers[2]["request"] == .number("7"))
    }

    @Test("ACTIVATE without a user interface fails, also after the client has given the role up")
    func noUserInterface() async throws {
        let browser = try server.connect()
        func isRefused() async -> Bool {
            await browser.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example"}"#, "ACTIVATION")?["error"]
                == .string("No user interface")
        }
        #expect(await isRefused())
        let agent = try server.connect()
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        #expect(await isShown(browser))
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":false}"#, "USER_INTERFACE")
        #expect(await isRefused())
    }

    private func isShown(_ browser: TestClient) async -> Bool {
        let answer = await browser.ask(#"{"cmd":"ACTIVATE","showUI":"PINMANAGEMENT"}"#, "ACTIVATION")
        return answer != nil && answer?["error"] == nil
    }

    @Test("a web page that asks without end cannot flood the user interface")
    func flood() async throws {
        let interface = try server.connect()
        _ = await interface.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        let browser = try server.connect()
        let asked = Array(repeating: #"{"cmd":"ACTIVATE","showUI":""}"#, count: 100)
        for line in asked { await browser.send(line) }
        for _ in asked { #expect(await browser.next("ACTIVATION")?["error"] == nil) }
        let shown = await interface.exchange().count { $0["msg"] == .string("SHOW_UI") }
        // The minute may change in between.
        #expect((20...40).contains(shown))
    }

    @Test("the newest user interface receives SHOW_UI")
    func newest() async throws {
        let (first, second, browser) = (try server.connect(), try server.connect(), try server.connect())
        for agent in [first, second] {
            _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        }
        #expect(await isShown(browser))
        #expect(await second.next("SHOW_UI")?["module"] == .string("PINMANAGEMENT"))
        #expect(await !first.exchange().contains { $0["msg"] == .string("SHOW_UI") })
    }

    @Test("the user interface runs the browser's AUTH, and the browser receives the result")
    func activation() async throws {
        let (agent, browser) = (try server.connect(), try server.connect())
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        await browser.send(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t","request":"r"}"#)
        let begin = await agent.next("AUTH")
        #expect(begin != nil && begin?["result"] == nil)
        _ = await agent.next("ACCESS_RIGHTS")
        await agent.send(#"{"cmd":"CANCEL"}"#)
        #expect(await agent.next("AUTH")?["url"] == .string("https://dienst.example/back?ResultMajor=error"))
        #expect(await browser.next("ACTIVATION")?["accepted"] == .bool(true))
        let answer = await browser.next("ACTIVATION")
        #expect(answer?["url"] == .string("https://dienst.example/back?ResultMajor=error"))
        #expect(answer?["request"] == .string("r"))
        #expect(answer?["error"] == nil)
    }

    @Test(
        "the error of an AUTH without a refresh address depends on whether a TcToken was received",
        arguments: [
            (.getTcTokenNetworkError, "Unreachable"), (.getTcTokenEmptyData, "No TcToken"),
            (.getTcTokenInvalidURL, "Insecure"), (.preVerificationCertificateExpired, "No address"),
            (.getTcTokenInvalidRedirectURL, "No TcToken"), (.getTcTokenInvalidCertificateKeyLength, "Unreachable"),
            (.getTcTokenInvalidEphemeralKeyLength, "Unreachable"),
        ] as [(FailureCode, String)]
    )
    func noAddress(reason: FailureCode, error: String) async throws {
        let failing = try await TestServer(service: { _, _ in
            TestService { plan in
                plan.failures[.request] = EServiceFailure(reason, .connection)
                plan.url = nil
            }
        })
        let (agent, browser) = (try failing.connect(), try failing.connect())
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        let begin = await browser.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        #expect(begin?["accepted"] == .bool(true))
        #expect(await browser.next("ACTIVATION")?["error"] == .string(error))
    }

    @Test("a browser that disconnects ends its authentication, and the user interface receives the reason")
    func browserLeaves() async throws {
        let agent = try server.connect()
        var browser: TestClient? = try server.connect()
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        _ = await browser?.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        _ = await agent.next("ACCESS_RIGHTS")
        browser = nil
        let end = await agent.next("AUTH")?["result"]
        #expect(end?["reason"] == .string("Browser_Send_Failed"))
        #expect(end?["minor"]?.string?.hasSuffix("al/common#communicationError") == true)
        // The next activation is accepted.
        let other = try server.connect()
        let begin = await other.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        #expect(begin?["accepted"] == .bool(true))
    }

    @Test("a user interface that disconnects ends the authentication, and the browser returns to the service")
    func userInterfaceLeaves() async throws {
        let (agent, browser) = try await asked()
        agent.close()
        let answer = await browser.next("ACTIVATION")
        #expect(answer?["url"] == .string("https://dienst.example/back?ResultMajor=error"))
    }

    @Test("the end of the daemon is a cancellation, not the loss of the browser")
    func daemonEnds() async throws {
        let (agent, browser) = try await asked()
        defer { browser.close() }
        _ = try server.listen()
        await server.stopListening()
        #expect(await agent.next("AUTH")?["result"]?["reason"] == .string("User_Cancelled"))
    }

    @Test("an authentication that ended before its browser disconnected keeps its reason")
    func firstReason() async throws {
        let agent = try server.connect()
        var browser: TestClient? = try server.connect()
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        _ = await browser?.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        _ = await agent.next("ACCESS_RIGHTS")
        await agent.send(#"{"cmd":"CANCEL"}"#)
        let end = await agent.next("AUTH")?["result"]
        browser = nil
        #expect(end?["reason"] == .string("User_Cancelled"))
    }

    @Test("ACTIVATE is refused while the user interface is busy, and with an invalid URL")
    func busy() async throws {
        let (agent, browser) = (try server.connect(), try server.connect())
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        let wrong = await browser.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"nonsense"}"#, "ACTIVATION")
        #expect(wrong?["error"] == .string("No TcToken"))
        let missing = await browser.ask(#"{"cmd":"ACTIVATE"}"#, "ACTIVATION")
        #expect(missing?["error"] == .string("No TcToken"))
        _ = await agent.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN")
        let busy = await browser.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example"}"#, "ACTIVATION")
        #expect(busy?["error"] == .string("Busy"))
    }

    private static let activate = #"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#

    /// A user interface that is asked for the rights of an authentication, and the browser that has started it.
    private func asked() async throws -> (TestClient, TestClient) {
        let (agent, browser) = (try server.connect(), try server.connect())
        _ = await agent.ask(Self.setUserInterface(true), "USER_INTERFACE")
        #expect(await browser.ask(Self.activate, "ACTIVATION")?["accepted"] == .bool(true))
        _ = await agent.next("ACCESS_RIGHTS")
        return (agent, browser)
    }

    private func agent(uid: UInt32?, _ server: TestServer) async throws -> TestClient {
        let agent = try server.connect(uid: uid)
        #expect(await agent.ask(Self.setUserInterface(true), "USER_INTERFACE") == Self.role(true))
        return agent
    }

    private static func setUserInterface(_ active: Bool) -> String {
        #"{"cmd":"SET_USER_INTERFACE","active":\#(active)}"#
    }

    private static func role(_ active: Bool) -> JSON {
        .object([.init("active", .bool(active)), .init("msg", .string("USER_INTERFACE"))])
    }

    @Test("the role needs the permission agent")
    func agentPermission() async throws {
        let client = try server.connect(uid: 1001, [.readers, .cards])
        let answer = await client.ask(Self.setUserInterface(true), "USER_INTERFACE", "ACCESS_DENIED")
        #expect(answer?["msg"] == .string("ACCESS_DENIED"))
    }

    @Test("a browser is served by the user interface of its own user only")
    func ownUser() async throws {
        let (alice, bob) = (try await agent(uid: 1001, server), try await agent(uid: 1002, server))
        let browser = try server.connect(uid: 1001, [.activate])
        #expect(await browser.ask(Self.activate, "ACTIVATION")?["accepted"] == .bool(true))
        #expect(await alice.next("ACCESS_RIGHTS") != nil)
        #expect(await !bob.exchange().contains { $0["msg"] == .string("AUTH") })
        for uid in [1003, 0, nil] as [UInt32?] {
            let other = try server.connect(uid: uid, [.activate])
            #expect(await other.ask(Self.activate, "ACTIVATION")?["error"] == .string("No user interface"))
            let show = await other.ask(#"{"cmd":"ACTIVATE","showUI":""}"#, "ACTIVATION")
            #expect(show?["error"] == .string("No user interface"))
        }
    }

    @Test("root's user interface serves other users only if the configuration says so", arguments: [false, true])
    func root(servesAll: Bool) async throws {
        let server = try await TestServer(rootServesAll: servesAll)
        let root = try await agent(uid: 0, server)
        let browser = try server.connect(uid: 1001, [.activate])
        let answer = await browser.ask(Self.activate, "ACTIVATION")
        #expect((answer?["accepted"] == .bool(true)) == servesAll)
        #expect((answer?["error"] == .string("No user interface")) == !servesAll)
        if servesAll { #expect(await root.next("ACCESS_RIGHTS") != nil) }
        // The user's own one comes first.
        let own = try await agent(uid: 1002, server)
        let second = try server.connect(uid: 1002, [.activate])
        #expect(await second.ask(Self.activate, "ACTIVATION")?["accepted"] == .bool(true))
        #expect(await own.next("ACCESS_RIGHTS") != nil)
        // A user that the kernel does not report is not root.
        let unknown = try server.connect(uid: nil, [.activate])
        #expect(
            (await unknown.ask(Self.activate, "ACTIVATION")?["error"] == .string("No user interface")) == !servesAll
        )
    }

    @Test("a replaced user interface gets USER_INTERFACE, and again when it takes over")
    func ousted() async throws {
        let (first, other) = (try await agent(uid: 1001, server), try await agent(uid: 1002, server))
        let second = try await agent(uid: 1001, server)
        #expect(await first.next("USER_INTERFACE") == Self.role(false))
        // The same command again sends no message to the first one.
        _ = await second.ask(Self.setUserInterface(true), "USER_INTERFACE")
        second.close()
        #expect(await first.next("USER_INTERFACE") == Self.role(true))
        let third = try await agent(uid: 1001, server)
        #expect(await first.next("USER_INTERFACE") == Self.role(false))
        _ = await third.ask(Self.setUserInterface(false), "USER_INTERFACE")
        #expect(await first.next("USER_INTERFACE") == Self.role(true))
        #expect(await !other.exchange().contains { $0["msg"] == .string("USER_INTERFACE") })
        #expect(await !first.exchange().contains { $0["msg"] == .string("USER_INTERFACE") })
    }

    @Test("two user interfaces at once do not mix their browsers")
    func twoBrowsers() async throws {
        let agents = [try await agent(uid: 1001, server), try await agent(uid: 1002, server)]
        var browsers: [TestClient?] = [
            try server.connect(uid: 1001, [.activate]), try server.connect(uid: 1002, [.activate]),
        ]
        for (agent, browser) in zip(agents, browsers) {
            _ = await browser?.ask(Self.activate, "ACTIVATION")
            _ = await agent.next("ACCESS_RIGHTS")
        }
        browsers[0] = nil
        #expect(await agents[0].next("AUTH")?["result"]?["reason"] == .string("Browser_Send_Failed"))
        #expect(await agents[1].answer(to: #"{"cmd":"GET_STATUS"}"#)?["state"] == .string("ACCESS_RIGHTS"))
        await agents[1].send(#"{"cmd":"CANCEL"}"#)
        #expect(await agents[1].next("AUTH")?["result"]?["reason"] == .string("User_Cancelled"))
        #expect(await browsers[1]?.next("ACTIVATION")?["url"] != nil)
    }

    @Test("a client of the socket may not send ACTIVATE")
    func permission() async throws {
        let ordinary = try await TestServer(permissions: [.readers, .cards])
        let client = try ordinary.connect()
        let answer = await client.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example"}"#, "ACCESS_DENIED")
        #expect(answer?["error"] == .string("ACTIVATE"))
    }
}
