// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Cards
import Concurrency
import Drivers
import Foundation
import HDWallet
import HTTP
import Host
import Keycard
import NFCTestSupport
import Readers
import ReadersNFC
import ReadersVirtual
import Server
import ServerDoubles
import Store
import TestSupport
import Testing
import Text
import VirtualKeycard
import WalletFeature

/// A server with the MYKEY operations, a fake node, the server of a fake dapp, and one virtual reader.
@Loop final class OperationBench {
    let server: TestServer
    let node: AntelopeNodeDouble
    let dapp: CallbackDouble
    let clock = StandingClock()
    private let folder: TemporaryFolder

    /// The account whose permission has the key of the cards.
    static let account = "bobbobbobbob"
    static let words = "legal winner thank year wave sausage worth useful legal winner thank yellow"
    static let otherWords = "letter advice cage absurd amount doctor acoustic avoid letter advice cage above"
    static let pin = "123456"

    /// The moment of all operations, in seconds since 1970.
    nonisolated static let now = 1_795_368_700

    init(
        hasNode: Bool = true,
        allowsHTTP: Bool = true,
        isSecure: Bool = false,
        // The machine of a test may be busy for long.
        limit: Duration = .seconds(240),
        board: EmulatedPN532? = nil
    ) async throws {
        folder = try TemporaryFolder()
        node = try AntelopeNodeDouble()
        dapp = try CallbackDouble(isSecure: isSecure)
        let key = KeyText(try Self.key())
        node.change { state in
            state.accounts[Self.account] = [
                "active": .init(keys: [key.legacy ?? "": 1]), "owner": .init(threshold: 2, keys: [key.description: 1]),
            ]
            state.tokens["eosio.token"]?["EOS"]?.balances[Self.account] = 100_000
        }
        let chain = try #require(ChainID(node.state.chain))
        var antelope = AntelopeServices(
            chain: chain,
            node: hasNode ? WebAddress(node.address) : nil,
            time: { Self.now }
        )
        antelope.limits = HTTPLimits(connect: limit, transfer: limit)
        antelope.network.heartbeat = .patient
        antelope.allowsHTTPCallbacks = allowsHTTP
        if isSecure { antelope.callbackAuthorities = .file(try folder.write("ca.pem", dapp.authority.utf8)) }
        var trust = KeycardTrust()
        trust.authorities.insert(try VirtualKeycardDescription.authority().publicKey.compressed)
        let store = StateStore(folder: folder, "/state")
        let (services, cards, time) = (antelope, trust, clock)
        server = try await TestServer(
            readers: board == nil ? 1 : 0,
            backends: board.map { [DriverBackend.nfc(devices: [$0.connection], heartbeat: .patient)] } ?? [],
            moreCards: [VirtualKeycardKind()],
            moreFeatures: { [WalletFeature($0, store, trust: cards, antelope: services, now: { time.now })] }
        )
        await server.ready([board.map { "pn532_uart:\($0.path)" } ?? "Simulator"])
    }

    isolated deinit {
        node.release()
        dapp.release()
    }

    /// The key of m/44'/194'/0'/0/0 by our own BIP-32.
    static func key(_ words: String = words) throws -> PublicKey {
        let path = try #require(DerivationPath("m/44'/194'/0'/0/0"))
        let mnemonic = try Mnemonic(words: Secret(words.utf8))
        return try ExtendedPrivateKey(seed: try mnemonic.seed()).derive(path).key.publicKey
    }

    /// A card with keys, as `card` of SET_CARD.
    static func card(_ version: String = "4.0", words: String = words, _ more: String = "") -> String {
        #"{"kind":"keycard","version":"\#(version)","words":"\#(words)"\#(more)}"#
    }

    /// Puts a card into the reader and waits until it is recognised.
    func insert(_ card: String = OperationBench.card()) async throws {
        let readers = try #require(server.readers)
        try await insert(try readers.describe(simulator: nil, card: try JSON(card.utf8)))
    }

    /// Puts a card into the reader, and connects a user.
    func user(
        with card: String = OperationBench.card(),
        _ initialization: String? = OperationUser.simple
    ) async throws -> OperationUser {
        try await insert(card)
        return try await OperationUser(self, initialization)
    }

    func insert(_ card: any CardDescription) async throws {
        let reader = try #require(server.registry["Simulator"])
        #expect(try await server.registry.insert(card, into: reader))
        let client = try server.connect()
        while let state = await client.next("READER"), state["card"]?["kind"] == nil {}
        client.close()
    }

    /// Inserts the card of the reader, if there is no card in it.
    func insertIfAway() async throws {
        let reader = try #require(server.registry["Simulator"])
        _ = try await server.registry.insert(nil, into: reader)
    }

    /// Takes the card out of the reader and away.
    func remove() async throws {
        await server.removeCard(from: "Simulator")
    }

    func card() async throws -> VirtualCard {
        let card = await server.readers?.card(in: "Simulator")
        return try #require(card)
    }

    func counter(_ name: String) async throws -> Int? {
        try await card().counters.first { $0.key == name }?.value.int
    }

    /// A transfer of 1.5 EOS to alice.
    static func transfer(_ more: String = "") -> String {
        #"{"cmd":"WALLET_TRANSFER","from":"\#(account)","to":"alice","amount":"1.5","symbol":"EOS","contractName":"eosio.token","decimal":4,"memo":"hello"\#(more)}"#
    }

    static func authorize(_ more: String = "", account: String = account) -> String {
        #"{"cmd":"WALLET_AUTHORIZE","account":"\#(account)","userName":"bob"\#(more)}"#
    }
}

/// The client of an operation: answers each message by a table, and records the messages.
@Loop final class OperationUser {
    let client: TestClient
    private let bench: OperationBench
    /// Without READER, STATUS and a plain INSERT_CARD.
    private(set) var heard: [JSON] = []
    /// What is sent after each message. An answer is used again.
    var answers = [
        "WALLET_REQUEST": #"{"cmd":"ACCEPT"}"#, "ENTER_PIN": #"{"cmd":"SET_PIN","value":"123456"}"#,
        "ENTER_PUK": #"{"cmd":"SET_PUK","value":"987654321098"}"#,
        "ENTER_NEW_PIN": #"{"cmd":"SET_NEW_PIN","value":"654321"}"#,
        // A garbled answer to PAIR looks like that of a card with another password.
        "ENTER_PAIRING_PASSWORD": #"{"cmd":"SET_PAIRING_PASSWORD","value":"KeycardDefaultPairing"}"#,
    ]
    /// Called once, when a message with this name is there, before its answer.
    var hook: (name: String, body: @Loop () async throws -> Void)?
    /// Whether the card is put into the reader again when the operation waits for one.
    var returnsCard = true

    static let simple = #"{"cmd":"WALLET_INIT","mode":"MYKEYSimple","dappName":"Shop"}"#
    static func mykey(_ uuid: String = "u-1", appKey: String = "k-1") -> String {
        #"{"cmd":"WALLET_INIT","mode":"MYKEY","appKey":"\#(appKey)","UUID":"\#(uuid)","dappName":"Shop","scheme":"shop"}"#
    }

    init(_ bench: OperationBench, _ initialization: String? = simple) async throws {
        self.bench = bench
        client = try bench.server.connect()
        guard let initialization else { return }
        let ready = await client.ask(initialization, "WALLET_READY")
        #expect(ready?["error"] == nil)
    }

    /// Sends a command and answers until WALLET_RESULT, which is returned.
    func run(_ command: String) async throws -> JSON {
        heard = []
        await client.send(command)
        while let message = await client.next() {
            guard let name = message["msg"]?.string, name != "READER", name != "STATUS" else { continue }
            if name == "INSERT_CARD", message["error"] == nil {
                if returnsCard { try await bench.insertIfAway() }
                continue
            }
            heard.append(message)
            if name == "WALLET_RESULT" || name == "BAD_STATE" || name == "ACCESS_DENIED" { return message }
            if let hook, hook.name == name {
                self.hook = nil
                try await hook.body()
            }
            if let answer = answers[name] { await client.send(answer) }
        }
        return .null
    }

    var names: [String] { heard.compactMap { $0["msg"]?.string } }
    func last(_ name: String) -> JSON? { heard.last { $0["msg"] == .string(name) } }
}

extension JSON {
    /// `code` of WALLET_RESULT.
    var resultCode: Int? { self["code"]?.int }
}
