// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Host
import TestSupport
import Testing
import Text
import Wire

@testable import Server

@Suite("The client that speaks with the user for browsers", .timeLimit(.minutes(5)))
@Loop struct UserInterfaceTests {
    private let server: TestServer

    init() throws { server = try TestServer() }

    @Test("SET_USER_INTERFACE wants a boolean and says what holds")
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

    @Test("without such a client a browser hears so, and so it does when the client has gone or given it up")
    func nobody() async throws {
        let door = try server.connect()
        func isRefused() async -> Bool {
            await door.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example"}"#, "ACTIVATION")?["error"]
                == .string("No user interface")
        }
        #expect(await isRefused())
        let agent = try server.connect()
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        #expect(await isShown(door))
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":false}"#, "USER_INTERFACE")
        #expect(await isRefused())
    }

    private func isShown(_ door: TestClient) async -> Bool {
        let answer = await door.ask(#"{"cmd":"ACTIVATE","showUI":"PINMANAGEMENT"}"#, "ACTIVATION")
        return answer != nil && answer?["error"] == nil
    }

    @Test("the newest client has the word, and shows itself when it is asked to")
    func newest() async throws {
        let (first, second, door) = (try server.connect(), try server.connect(), try server.connect())
        for agent in [first, second] {
            _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        }
        #expect(await isShown(door))
        #expect(await second.next("SHOW_UI")?["module"] == .string("PINMANAGEMENT"))
        #expect(await !first.exchange().contains { $0["msg"] == .string("SHOW_UI") })
    }

    @Test("a browser's AUTH is the client's own, and its end is the browser's answer")
    func activation() async throws {
        let (agent, door) = (try server.connect(), try server.connect())
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        await door.send(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t","request":"r"}"#)
        let begin = await agent.next("AUTH")
        #expect(begin != nil && begin?["result"] == nil)
        _ = await agent.next("ACCESS_RIGHTS")
        await agent.send(#"{"cmd":"CANCEL"}"#)
        #expect(await agent.next("AUTH")?["url"] == .string("https://dienst.example/back?ResultMajor=error"))
        #expect(await door.next("ACTIVATION")?["accepted"] == .bool(true))
        let answer = await door.next("ACTIVATION")
        #expect(answer?["url"] == .string("https://dienst.example/back?ResultMajor=error"))
        #expect(answer?["request"] == .string("r"))
        #expect(answer?["error"] == nil)
    }

    @Test(
        "an end without an address says whether there was a TcToken",
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
        let (agent, door) = (try failing.connect(), try failing.connect())
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        let begin = await door.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        #expect(begin?["accepted"] == .bool(true))
        #expect(await door.next("ACTIVATION")?["error"] == .string(error))
    }

    @Test("a browser that leaves ends its authentication, and the user's program hears why")
    func browserLeaves() async throws {
        let agent = try server.connect()
        var door: TestClient? = try server.connect()
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        _ = await door?.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        _ = await agent.next("ACCESS_RIGHTS")
        door = nil
        let end = await agent.next("AUTH")?["result"]
        #expect(end?["reason"] == .string("Browser_Send_Failed"))
        #expect(end?["minor"]?.string?.hasSuffix("al/common#communicationError") == true)
        // The next one begins as if nothing had been.
        let other = try server.connect()
        let begin = await other.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        #expect(begin?["accepted"] == .bool(true))
    }

    @Test("what ended before its browser left keeps its own reason")
    func firstReason() async throws {
        let agent = try server.connect()
        var door: TestClient? = try server.connect()
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        _ = await door?.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        _ = await agent.next("ACCESS_RIGHTS")
        await agent.send(#"{"cmd":"CANCEL"}"#)
        let end = await agent.next("AUTH")?["result"]
        door = nil
        #expect(end?["reason"] == .string("User_Cancelled"))
    }

    @Test("a client that is busy cannot be asked twice, and a wrong address reaches nobody")
    func busy() async throws {
        let (agent, door) = (try server.connect(), try server.connect())
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        let wrong = await door.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"nonsense"}"#, "ACTIVATION")
        #expect(wrong?["error"] == .string("No TcToken"))
        let missing = await door.ask(#"{"cmd":"ACTIVATE"}"#, "ACTIVATION")
        #expect(missing?["error"] == .string("No TcToken"))
        _ = await agent.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN")
        let busy = await door.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example"}"#, "ACTIVATION")
        #expect(busy?["error"] == .string("Busy"))
    }

    @Test("a client of the socket is no browser's door")
    func permission() async throws {
        let ordinary = try TestServer(permissions: [.readers, .cards])
        let client = try ordinary.connect()
        let answer = await client.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example"}"#, "ACCESS_DENIED")
        #expect(answer?["error"] == .string("ACTIVATE"))
    }
}
