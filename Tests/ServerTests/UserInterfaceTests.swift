// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Host
import TestSupport
import Testing
import Text
import Wire

@testable import Server

@Suite("The user interface for browsers", .timeLimit(.minutes(5)))
@Loop struct UserInterfaceTests {
    private let server: TestServer

    init() throws { server = try TestServer() }

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
        #expect(answers.map { $0["error"]?.string } == ["'active' cannot be undefined", "Invalid 'active'", nil, nil])
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
            (.getTcTokenNetworkError, "No TcToken"), (.getTcTokenEmptyData, "No TcToken"),
            (.getTcTokenInvalidURL, "No address"), (.preVerificationCertificateExpired, "No address"),
        ] as [(FailureCode, String)]
    )
    func noAddress(reason: FailureCode, error: String) async throws {
        let failing = try TestServer(service: { _, _ in
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

    @Test("a client of the socket may not send ACTIVATE")
    func permission() async throws {
        let ordinary = try TestServer(permissions: [.readers, .cards])
        let client = try ordinary.connect()
        let answer = await client.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example"}"#, "ACCESS_DENIED")
        #expect(answer?["error"] == .string("ACTIVATE"))
    }
}
