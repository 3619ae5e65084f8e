// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Foundation
import HDWallet
import HTTP
import Host
import Keycard
import MPin
import MPinFeature
import Readers
import ReadersVirtual
import Server
import Store
import TestSupport
import Testing
import Text
import VirtualKeycard
import WalletFeature

/// A server with the feature and its store, and one client.
@Loop final class MPinStage {
    let servers: LoginServers
    let server: TestServer
    let client: TestClient
    /// A user name that no other test has.
    let user: String

    /// What answers a question for the second factor of MPinMFA.
    var secondFactor = "card 17"

    /// The reader for Keycards; nil if the test has none.
    let readers: FaultyReaders?
    /// What answers a Keycard's question for its PIN.
    var cardPIN = "123456"
    /// Whether CANCEL answers the question for the PIN of M-Pin at a login, which saves the servers the computation of
    /// a pairing.
    var cancelsLogin = false
    /// The messages of the last `run`, without READER and STATUS.
    private(set) var heard: [JSON] = []

    /// The store of this server; nil if the test has none.
    let store: Store?

    /// Makes a server with a new store, or with the store of an earlier server, as if badged had been started again.
    init(
        _ name: String = "alice",
        after earlier: MPinStage? = nil,
        permissions: Permissions = .all,
        domains: [String] = [],
        readers: FaultyReaders? = nil,
        held: HeldReader? = nil
    ) async throws {
        self.readers = readers
        let store: Store
        if let same = earlier?.store {
            store = same
        } else {
            store = try Store(folder: NSTemporaryDirectory() + "badged-mpin-\(UUID().uuidString)")
        }
        self.store = store
        servers = if let earlier { earlier.servers } else { try await LoginServers.running() }
        let state = StateStore { () throws(Failure) in store }
        let backend: (any ReaderBackend)? = if let held { held.backend } else { readers }
        (server, client) = try await Self.start(state, permissions, domains, backend)
        if held != nil {
            await server.ready([HeldReader.name])
        } else if readers != nil {
            await server.ready(["Simulator"])
        }
        user = Self.user(name)
    }

    /// Makes a server with a store that cannot be used.
    init(broken state: StateStore) async throws {
        (store, readers) = (nil, nil)
        servers = try await LoginServers.running()
        (server, client) = try await Self.start(state)
        user = Self.user("alice")
    }

    private static func start(
        _ state: StateStore,
        _ permissions: Permissions = .all,
        _ domains: [String] = [],
        _ readers: (any ReaderBackend)? = nil
    ) async throws -> (TestServer, TestClient) {
        var configuration = MPinConfiguration(userAgent: "badged/test")
        configuration.limits = LoginServers.patient
        configuration.network.heartbeat = .patient
        configuration.allowsPrivateServers = true
        for domain in domains {
            let isAdded = configuration.domains.add(domain)
            #expect(isAdded)
        }
        let trust = KeycardTrust(authorities: [try VirtualKeycardDescription.authority().publicKey.compressed])
        let server = try await TestServer(
            readers: 0,
            backends: readers.map { [$0] } ?? [],
            permissions: permissions,
            moreFeatures: { registry in
                let wallet = WalletFeature(registry, state, trust: trust)
                return [wallet, MPinFeature(state, configuration, cards: wallet)]
            }
        )
        return (server, try server.connect(uid: 1000))
    }

    /// A name without digits, which tests could take for those of a PIN, and without vowels: the double reads words in it.
    private static func user(_ name: String) -> String {
        let letters = (0..<24).map { _ in "bcdfghjkmpqstvwxz".randomElement() ?? "x" }
        return "\(name)+\(String(letters))@mpin.test"
    }

    /// The maximum number of messages of one command. A question that is answered wrongly is asked again, without end.
    private static let maximumMessages = 64

    /// Sends a command and returns its result. A question for a PIN is answered with `pin`, one of a Keycard with
    /// `cardPIN`, and a Keycard that is away is inserted again.
    func run(_ command: String, _ members: String = "", pin: String = "1234", by other: TestClient? = nil) async -> JSON
    {
        let client = other ?? client
        await client.send(#"{"cmd":"\#(command)"\#(members.isEmpty ? "" : ",")\#(members)}"#)
        heard = []
        while let message = await client.next() {
            guard let name = message["msg"]?.string, name != "READER", name != "STATUS" else { continue }
            heard.append(message)
            guard heard.count < Self.maximumMessages else {
                Issue.record("\(command) asks without end: \(heard)")
                break
            }
            switch name {
            case "INSERT_CARD":
                if message["error"] != nil { await server.withdraw() }
                await insertIfAway()
            case "ENTER_PAIRING_PASSWORD":
                let password = KeycardParameters.defaultPairingPassword
                await client.send(#"{"cmd":"SET_PAIRING_PASSWORD","value":"\#(password)"}"#)
            case "ENTER_PIN" where message["reader"] != nil:
                await client.send(#"{"cmd":"SET_PIN","value":"\#(cardPIN)"}"#)
            case "ENTER_PIN" where cancelsLogin: await client.send(#"{"cmd":"CANCEL"}"#)
            case "ENTER_PIN", "ENTER_NEW_PIN":
                let answer = name == "ENTER_PIN" ? "SET_PIN" : "SET_NEW_PIN"
                let value = message["factor"]?.int == 0 ? pin : secondFactor
                await client.send(#"{"cmd":"\#(answer)","value":"\#(value)"}"#)
            case "MPIN_RESULT", "BAD_STATE", "ACCESS_DENIED", "UNKNOWN_COMMAND", "INVALID": return message
            default: continue
            }
        }
        return .null
    }

    /// The names of the messages of the last `run`; those about the reader are left out.
    var names: [String] { heard.compactMap { $0["msg"]?.string }.filter { $0 != "INSERT_CARD" } }

    /// The name of the status with which a command ends.
    func status(_ command: String, _ members: String = "", pin: String = "1234") async -> String {
        await run(command, members, pin: pin)["statusCodeAsString"]?.string ?? "no result"
    }

    /// Runs commands for the user, and expects that each one succeeds.
    func succeed(_ commands: String..., pin: String = "1234", at place: SourceLocation = #_sourceLocation) async {
        for command in commands {
            #expect(await status(command, who, pin: pin) == "OK", "\(command)", sourceLocation: place)
        }
    }

    /// The members that name the user.
    var who: String { #""userId":"\#(user)""# }

    func setBackend(_ url: String? = nil) async -> String {
        _ = await run("MPIN_INIT")
        return await status("MPIN_SET_BACKEND", #""url":"\#(url ?? servers.url)""#)
    }

    /// Connects another client, and sets the backend in its connection.
    func otherClient(uid: UInt32 = 1000) async throws -> TestClient {
        let other = try server.connect(uid: uid, .all)
        _ = await run("MPIN_INIT", by: other)
        #expect(await run("MPIN_SET_BACKEND", #""url":"\#(servers.url)""#, by: other).status == "OK")
        return other
    }

    /// Registers the user up to the token.
    func register(at url: String? = nil, pin: String = "1234") async {
        #expect(await setBackend(url) == "OK")
        #expect(await status("MPIN_MAKE_USER", who) == "OK")
        await succeed("MPIN_START_REGISTRATION", "MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION", pin: pin)
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
