// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Foundation
import Host
import MPin
import MPinFeature
import Server
import Store
import TestSupport
import Testing
import Text

/// A server with the feature and its store, and one client.
@Loop final class Stage {
    let servers: LoginServers
    let server: TestServer
    let client: TestClient
    /// A user name that no other test has.
    let user: String

    /// What answers a question for the second factor of MPinMFA.
    var secondFactor = "card 17"

    /// The store of this server; nil if the test has none.
    let store: Store?

    /// Makes a server with a new store, or with the store of an earlier server, as if badged had been started again.
    init(_ name: String = "alice", after earlier: Stage? = nil, permissions: Permissions = .all, domains: [String] = [])
        async throws
    {
        let store: Store
        if let same = earlier?.store {
            store = same
        } else {
            store = try Store(folder: NSTemporaryDirectory() + "badged-mpin-\(UUID().uuidString)")
        }
        self.store = store
        servers = try await LoginServers.running()
        (server, client) = try await Self.start(StateStore { () throws(StoreError) in store }, permissions, domains)
        user = Self.user(name)
    }

    /// Makes a server with a store that cannot be used.
    init(broken state: StateStore) async throws {
        store = nil
        servers = try await LoginServers.running()
        (server, client) = try await Self.start(state)
        user = Self.user("alice")
    }

    private static func start(
        _ state: StateStore,
        _ permissions: Permissions = .all,
        _ domains: [String] = []
    ) async throws -> (TestServer, TestClient) {
        var configuration = MPinConfiguration(userAgent: "badged/test")
        for domain in domains {
            let isAdded = configuration.domains.add(domain)
            #expect(isAdded)
        }
        let feature = MPinFeature(state, configuration)
        let server = try await TestServer(readers: 0, permissions: permissions, moreFeatures: { _ in [feature] })
        return (server, try server.connect(uid: 1000))
    }

    private static func user(_ name: String) -> String { "\(name)+\(UUID().uuidString)@mpin.test" }

    /// Sends a command and returns its result. A question for a PIN is answered with `pin`.
    func run(_ command: String, _ members: String = "", pin: String = "1234", by other: TestClient? = nil) async -> JSON
    {
        let client = other ?? client
        await client.send(#"{"cmd":"\#(command)"\#(members.isEmpty ? "" : ",")\#(members)}"#)
        while let message = await client.next() {
            switch message["msg"]?.string {
            case "ENTER_PIN", "ENTER_NEW_PIN":
                let answer = message["msg"]?.string == "ENTER_PIN" ? "SET_PIN" : "SET_NEW_PIN"
                let value = message["factor"]?.int == 0 ? pin : secondFactor
                await client.send(#"{"cmd":"\#(answer)","value":"\#(value)"}"#)
            case "MPIN_RESULT", "BAD_STATE", "ACCESS_DENIED", "UNKNOWN_COMMAND", "INVALID": return message
            default: continue
            }
        }
        return .null
    }

    /// The name of the status with which a command ends.
    func status(_ command: String, _ members: String = "", pin: String = "1234") async -> String {
        await run(command, members, pin: pin)["statusCodeAsString"]?.string ?? "no result"
    }

    /// The members that name the user.
    var who: String { #""userId":"\#(user)""# }

    func setBackend(_ url: String? = nil) async -> String {
        _ = await run("MPIN_INIT")
        return await status("MPIN_SET_BACKEND", #""url":"\#(url ?? servers.url)""#)
    }

    /// Registers the user up to the token.
    func register(at url: String? = nil, pin: String = "1234") async {
        #expect(await setBackend(url) == "OK")
        #expect(await status("MPIN_MAKE_USER", who) == "OK")
        for command in ["MPIN_START_REGISTRATION", "MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION"] {
            #expect(await status(command, who, pin: pin) == "OK", "\(command)")
        }
    }

    /// Logs the user in, and returns the result.
    func logIn(_ members: String = "", pin: String = "1234") async -> JSON {
        #expect(await status("MPIN_START_AUTHENTICATION", who) == "OK")
        return await run("MPIN_FINISH_AUTHENTICATION", members.isEmpty ? who : "\(who),\(members)", pin: pin)
    }

    func state() async -> String? {
        await run("MPIN_USERS", who)["users"]?.array?.first?["state"]?.string
    }
}

extension JSON {
    var status: String? { self["statusCodeAsString"]?.string }
}
