// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Scanners
import TestSupport
import Testing
import Text
import VirtualEID

@testable import Server

/// A command that starts a workflow after a wait, as after a look at a store.
@Loop private final class WaitingFeature: Feature {
    private let changes = Changes()
    private var isWaiting = false
    private var isOver = false

    nonisolated init() {}

    var commands: [CommandSpec] { [CommandSpec("WAIT", "WAITED", permission: .cards, isForIdle: true, wait)] }

    private func wait(_ call: Call) async throws(Failure) -> Reply {
        isWaiting = true
        changes.notify()
        await changes.wait { isOver }
        return .workflow("WAIT", announcedBy: WrittenMessage("WAITED")) { _ throws(Failure) in
            Reply("WAITED") { $0.member("success", true) }
        }
    }

    func untilCommand() async { await changes.wait { isWaiting } }

    func end() {
        isOver = true
        changes.notify()
    }
}

@Suite("Permissions that change while a client is connected", .timeLimit(.minutes(5)))
@Loop struct PermissionChangeTests {
    /// The rules for the clients of a test.
    @Loop private final class Rules {
        var permissions: Permissions = .all
        nonisolated init() {}
    }

    private let rules = Rules()
    private let radio = Radio(scanners: [ScriptedScanner()], clock: ManualClock())
    private let server: TestServer

    init() async throws { server = try await TestServer(radio: radio) }

    private func connect() throws -> TestClient {
        try server.connect(uid: 1001, rules.permissions) { [rules] in rules.permissions }
    }

    private func change(to permissions: Permissions) async {
        rules.permissions = permissions
        await server.server.evaluatePermissions()
    }

    private static let denied = JSON.string("[access] no longer gives this client the permission")

    @Test("a workflow ends with a reason of its own, its reader is free, and no try is spent")
    func changePIN() async throws {
        try await server.insert()
        let client = try connect()
        _ = try #require(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PIN"))
        await change(to: Permissions.all.subtracting(.wallet))
        #expect(await client.exchange(#"{"cmd":"GET_STATUS"}"#).last?["state"] == .string("ENTER_PIN"))
        await change(to: .readers)
        #expect(await client.next("CHANGE_PIN") == #"{"msg":"CHANGE_PIN","reason":"Access_Denied","success":false}"#)
        #expect(!server.isLent())
        #expect(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ACCESS_DENIED", "ENTER_PIN")?["error"] != nil)
        #expect(server.notices.contains { $0.contains("its permissions have changed") })
        #expect(server.notices.contains { $0.contains("CHANGE_PIN ended, Access_Denied") })
    }

    @Test("an authentication ends, and its result says why")
    func authentication() async throws {
        let client = try connect()
        _ = try #require(await client.ask(Fixture.runAuth, "ACCESS_RIGHTS"))
        await change(to: [])
        let result = await client.next("AUTH")?["result"]
        #expect(result?["reason"] == .string("Access_Denied"))
        #expect(result?["message"]?.string?.contains("no longer gives this client the permission") == true)
    }

    @Test("READER is sent only while the client has the permission; all readers are sent when it comes back")
    func readers() async throws {
        let client = try connect()
        _ = await client.exchange()
        await change(to: .scan)
        try await server.insert()
        #expect(await client.exchange() == [])
        await change(to: .readers)
        // The card is recognised at some time.
        while let reader = await client.next("READER"), reader["card"] == .null {}
        let reader = await client.answer(to: #"{"cmd":"GET_READER","name":"Simulator"}"#)
        #expect(reader == .simulator(card: .card(tries: 3), keypad: false))
    }

    @Test("a scan ends, and SCAN says why")
    func scan() async throws {
        let client = try connect()
        _ = try #require(await client.answer(to: #"{"cmd":"START_SCAN"}"#))
        await change(to: Permissions.all.subtracting(.admin))
        #expect(await client.answer(to: #"{"cmd":"GET_SCAN"}"#)?["wanted"] == .bool(true))
        await change(to: Permissions.all.subtracting(.scan))
        let message = await client.next("SCAN")
        #expect(message?["wanted"] == .bool(false) && message?["error"] == Self.denied)
    }

    @Test("a scan for whole advertisements ends when only admin is taken away")
    func adverts() async throws {
        let client = try connect()
        let answer = try #require(await client.answer(to: #"{"cmd":"START_SCAN","adverts":"raw"}"#))
        #expect(answer["wanted"] == .bool(true))
        await change(to: Permissions.all.subtracting(.admin))
        let message = await client.next("SCAN")
        #expect(message?["wanted"] == .bool(false) && message?["error"] == Self.denied)
    }

    @Test("automatic opening ends with the permission")
    func opening() async throws {
        let client = try connect()
        _ = try #require(await client.answer(to: #"{"cmd":"START_SCAN"}"#))
        _ = try #require(await client.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"on"}"#, "AUTO_OPEN"))
        await change(to: Permissions.all.subtracting(.open))
        let message = await client.next("AUTO_OPEN")
        #expect(message?["mode"] == .string("off") && message?["error"] == Self.denied)
        #expect(await client.answer(to: #"{"cmd":"GET_SCAN"}"#)?["wanted"] == .bool(true))
    }

    @Test("the role for browsers ends, and with it the authentication for a browser")
    func userInterface() async throws {
        let agent = try connect()
        _ = try #require(await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE"))
        let browser = try server.connect(uid: 1001, .activate)
        let activate = #"{"cmd":"ACTIVATE","tcTokenURL":"https://dienst.example/t"}"#
        #expect(await browser.ask(activate, "ACTIVATION")?["accepted"] == .bool(true))
        _ = try #require(await agent.next("ACCESS_RIGHTS"))
        await change(to: Permissions.all.subtracting(.agent))
        let message = await agent.next("USER_INTERFACE")
        #expect(message?["active"] == .bool(false) && message?["error"] == Self.denied)
        #expect(await agent.next("AUTH")?["result"]?["reason"] == .string("Access_Denied"))
        var answer = await browser.ask(#"{"cmd":"ACTIVATE","showUI":"x"}"#, "ACTIVATION")
        // The end of the authentication comes first.
        if answer?["error"] == nil { answer = await browser.next("ACTIVATION") }
        #expect(answer?["error"] != nil)
    }

    @Test("a command that has waited starts no workflow without its permission, or beside that of a browser")
    func waiting() async throws {
        for isDenied in [true, false] {
            let feature = WaitingFeature()
            let server = try await TestServer(moreFeatures: { _ in [feature] })
            let rules = Rules()
            let client = try server.connect(uid: 1001, rules.permissions) { rules.permissions }
            _ = try #require(await client.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE"))
            await client.send(#"{"cmd":"WAIT","request":"r"}"#)
            await feature.untilCommand()
            // With the browser its authentication ends.
            let browser = try server.connect(uid: 1001, .activate)
            if isDenied {
                rules.permissions = .readers
                await server.server.evaluatePermissions()
            } else {
                let activate = #"{"cmd":"ACTIVATE","tcTokenURL":"https://dienst.example/t"}"#
                #expect(await browser.ask(activate, "ACTIVATION")?["accepted"] == .bool(true))
            }
            feature.end()
            let answer = await client.next("WAITED", "ACCESS_DENIED", "BAD_STATE")
            #expect(answer?["msg"] == .string(isDenied ? "ACCESS_DENIED" : "BAD_STATE"))
            #expect(answer?["request"] == .string("r"))
            #expect(!browser.isClosed)
        }
    }
}
