// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@testable import Server

@Suite("Limits for clients", .timeLimit(.minutes(5)))
@Loop struct LimitTests {
    private static func limits(_ change: (inout ServerLimits) -> Void) -> ServerLimits {
        var limits = ServerLimits()
        change(&limits)
        return limits
    }

    @Test(
        "a workflow beyond max_workflows is refused with the reason, and runs when another one has ended",
        arguments: [
            (#"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t"}"#, "AUTH"),
            (#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN"),
        ]
    )
    func workflows(command: String, answer: String) async throws {
        let server = try await TestServer(limits: Self.limits { $0.workflows = 2 })
        let running = [try server.connect(uid: 1001), try server.connect(uid: 1002)]
        for client in running { _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") }
        let third = try server.connect(uid: 1003)
        let refused = await third.ask(command, answer)
        #expect(
            refused?["error"]?.string
                == "Too many workflows are running (max_workflows = 2): try again when one has ended"
        )
        #expect(await third.ask(#"{"cmd":"GET_STATUS"}"#, "STATUS")?["workflow"] == .null)
        #expect(server.logged.contains { $0.contains("workflow refused") })
        _ = await running[0].ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        let begun = await third.ask(command, answer)
        #expect(begun != nil && begun?["error"] == nil)
    }

    @Test("one user cannot take all workflows, and each workflow has one open prompt at most")
    func workflowsOfUser() async throws {
        let server = try await TestServer(limits: Self.limits { $0.workflowsPerUser = 1 })
        let (first, second, other) = (
            try server.connect(uid: 1001), try server.connect(uid: 1001), try server.connect(uid: 1002)
        )
        _ = await first.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        let refused = await second.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN")
        #expect(
            refused?["error"]?.string
                == "Too many workflows of this user are running (max_workflows_per_user = 1): try again when one has ended"
        )
        #expect(await other.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") != nil)
        #expect(await first.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "BAD_STATE") != nil)
        // A client that has left has no workflow.
        first.close()
        await server.clients(2)
        #expect(await second.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") != nil)
    }

    @Test("a browser beyond the limit of workflows receives Busy")
    func browsers() async throws {
        let server = try await TestServer(limits: Self.limits { $0.workflows = 1 })
        let (agent, client, browser) = (try server.connect(), try server.connect(), try server.connect())
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        let answer = await browser.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        #expect(answer?["error"] == .string("Busy"))
    }

    @Test("one user cannot take all connections, also not through the browser port")
    func clientsOfUser() async throws {
        let server = try await TestServer(limits: Self.limits { $0.clientsPerUser = 2 })
        let own = [try server.connect(uid: 1001), try server.connect(uid: 1001)]
        for client in own { _ = await client.exchange() }
        let refused = try server.connect(uid: 1001)
        #expect(await refused.next() == #"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#)
        #expect(await refused.next() == nil)
        #expect(server.logged.contains { $0.contains("uid 1001 was refused") && $0.contains("max_clients_per_user") })
        let other = try server.connect(uid: 1002)
        #expect(await other.ask(#"{"cmd":"GET_STATUS"}"#, "STATUS") != nil)
        own[0].close()
        await server.clients(2)
        #expect(await (try server.connect(uid: 1001)).ask(#"{"cmd":"GET_STATUS"}"#, "STATUS") != nil)
    }

    @Test(
        "a prompt without an answer ends the workflow with a reason of its own, and the reader is free",
        arguments: [(3, "ENTER_PIN"), (1, "ENTER_CAN"), (0, "ENTER_PUK")]
    )
    func promptTimeout(tries: Int, prompt: String) async throws {
        let server = try await TestServer(limits: Self.limits { $0.promptTimeout = .zero })
        try await server.insert(.card { $0.retryCounter = tries })
        let client = try server.connect()
        #expect(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, prompt) != nil)
        let final = await client.next("CHANGE_PIN")
        #expect(final == #"{"msg":"CHANGE_PIN","reason":"Prompt_Timeout","success":false}"#)
        #expect(!server.isLent())
    }

    @Test("a consent without an answer ends the authentication, and the service gets the error")
    func consentTimeout() async throws {
        let server = try await TestServer(limits: Self.limits { $0.promptTimeout = .zero })
        let client = try server.connect()
        #expect(await client.ask(Fixture.runAuth, "ACCESS_RIGHTS") != nil)
        let result = await client.next("AUTH")?["result"]
        #expect(result?["reason"] == .string("Prompt_Timeout"))
        #expect(result?["minor"]?.string?.hasSuffix("/ifdl/common#timeoutError") == true)
        #expect(result?["message"] == .string("The user did not answer in time."))
    }

    @Test("a wrong value does not extend the time of a prompt")
    func wrongValues() async throws {
        let server = try await TestServer(limits: Self.limits { $0.promptTimeout = .milliseconds(300) })
        try await server.insert()
        let client = try server.connect()
        var message = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PIN")
        // The client would go on for ever if each wrong value began a new time.
        while message?["msg"]?.string == "ENTER_PIN" {
            message = await client.ask(#"{"cmd":"SET_PIN","value":"1"}"#, "ENTER_PIN", "CHANGE_PIN", "BAD_STATE")
        }
        if message?["msg"]?.string == "BAD_STATE" { message = await client.next("CHANGE_PIN") }
        #expect(message?["reason"] == .string("Prompt_Timeout") || client.hasReceived("Prompt_Timeout"))
    }
}
