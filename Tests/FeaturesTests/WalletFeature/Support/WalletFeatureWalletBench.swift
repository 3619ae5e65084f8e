// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Drivers
import Foundation
import HDWallet
import Host
import Keycard
import NFCTestSupport
import Readers
import ReadersNFC
import ReadersVirtual
import Server
import Store
import TestSupport
import Testing
import Text
import WalletFeature

@testable import VirtualKeycard

/// A server with wallet workflows, a store of its own and one virtual reader.
@Loop final class WalletBench {
    let server: TestServer
    /// The readers, if faults can happen in them.
    let faults: FaultyReaders?
    let folder = NSTemporaryDirectory() + "badged-wallet-" + UUID().uuidString

    init(
        trustsVirtualCards: Bool = true,
        hasStore: Bool = true,
        permissions: Permissions = .all,
        limits: ServerLimits = ServerLimits(),
        withFaults: Bool = false,
        board: EmulatedPN532? = nil
    ) async throws {
        var trust = KeycardTrust()
        if trustsVirtualCards {
            trust.authorities.insert(try VirtualKeycardDescription.authority().publicKey.compressed)
        }
        let store = StateStore { [folder] () throws(Failure) in hasStore ? try Store(folder: folder) : nil }
        faults = withFaults ? FaultyReaders(kinds: [VirtualKeycardKind()]) : nil
        server = try await TestServer(
            readers: withFaults || board != nil ? 0 : 1,
            backends: faults.map { [$0] } ?? board.map {
                [DriverBackend.nfc(devices: [$0.connection], heartbeat: .patient)]
            } ?? [],
            limits: limits,
            permissions: permissions,
            moreCards: [VirtualKeycardKind()],
            moreFeatures: { [WalletFeature($0, store, trust: trust)] }
        )
        await server.ready([board.map { "pn532_uart:\($0.path)" } ?? "Simulator"])
    }

    isolated deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// Puts a new card into the reader, described as `card` of SET_CARD.
    func insert(_ card: String) async throws {
        let reader = try #require(server.registry["Simulator"])
        let readers = try readers()
        let description = try readers.describe(simulator: nil, card: try JSON(card.utf8))
        #expect(try await server.registry.insert(description, into: reader))
    }

    /// Puts a new card into the reader, and connects a user.
    func user(with card: String) async throws -> WalletUser {
        try await insert(card)
        return try WalletUser(self)
    }

    /// Inserts the card of the reader again.
    func insertAgain() async throws {
        let reader = try #require(server.registry["Simulator"])
        #expect(try await server.registry.insert(nil, into: reader))
    }

    /// Inserts the card of the reader, if it is not there.
    func insertIfAway() async throws {
        let reader = try #require(server.registry["Simulator"])
        _ = try await server.registry.insert(nil, into: reader)
    }

    /// Waits until the card in the reader is recognised.
    func waitForCard() async throws {
        let client = try server.connect()
        while let reader = await client.next("READER"), reader["card"]?["kind"] == nil {}
        client.close()
    }

    private func readers() throws -> VirtualReaders { try #require(faults?.base ?? server.readers) }

    /// The card of the reader, inserted or not.
    func card() async throws -> VirtualCard {
        let card = try await readers().card(in: "Simulator")
        return try #require(card)
    }

    /// The secrets and counters inside the card.
    struct Secrets: Sendable {
        var isInitialized = false
        var pinTries = 0
        var pukTries = 0
        /// How often the card has compared a PIN or a PUK.
        var checks = 0
        /// The PIN, if it is one of these tests.
        var pin: String?
        /// Whether the duress PIN is the one that the user chooses in these tests.
        var hasChosenDuressPIN = false
    }

    func secrets() async throws -> Secrets { try await card().keycardSecrets() }

    /// The answer of the card to SELECT, which ends its channel.
    func info() async throws -> KeycardInfo { try KeycardInfo(Array(await card().selection().dropLast(2))) }

    /// What the card counts, such as `pinTries`.
    func counter(_ name: String) async throws -> Int? {
        try await card().counters.first { $0.key == name }?.value.int
    }
}

/// The client of one workflow: answers each message by a table, and records the messages.
@Loop final class WalletUser {
    let client: TestClient
    /// The messages in order, from FLOW_STARTED on; without READER, STATUS and a plain INSERT_CARD.
    private(set) var heard: [JSON] = []
    /// The answers to each message, in order. The last one is used again.
    var answers: [String: [String]]

    /// The card that the user knows: the right PIN is typed, and a card that is away comes back.
    var knowsCard: WalletBench?
    /// The words that the user types for a whole wallet; nil: those that were shown.
    var typedWords: String?
    /// What the user has typed when some of the words were asked back.
    private(set) var typedCheck: String?

    convenience init(_ bench: WalletBench) throws { try self.init(bench.server.connect()) }

    init(_ client: TestClient) {
        self.client = client
        answers = Self.usual
    }

    nonisolated static let pin = "123456"
    nonisolated static let puk = "987654321098"
    nonisolated static let newPIN = "654321"
    nonisolated static let duressPIN = "222222"
    nonisolated static let passphrase = "TREZOR"

    /// What a user types at a card with the default secrets.
    static let usual = [
        "ENTER_PIN": [#"{"cmd":"SET_PIN","value":"\#(pin)"}"#],
        "ENTER_NEW_PIN": [#"{"cmd":"SET_NEW_PIN","value":"\#(newPIN)"}"#],
        "ENTER_PUK": [#"{"cmd":"SET_PUK","value":"\#(puk)"}"#],
        "ENTER_NEW_PUK": [#"{"cmd":"SET_NEW_PUK","value":"\#(puk)"}"#],
        "ENTER_DURESS_PIN": [#"{"cmd":"SET_DURESS_PIN","value":"\#(duressPIN)"}"#],
        "ENTER_PASSPHRASE": [#"{"cmd":"SET_PASSPHRASE","value":"\#(passphrase)"}"#],
        "ENTER_PAIRING_PASSWORD": [
            #"{"cmd":"SET_PAIRING_PASSWORD","value":"\#(KeycardParameters.defaultPairingPassword)"}"#
        ],
        "SHOW_PUK": [#"{"cmd":"ACCEPT"}"#],
        "SHOW_PAPER_WALLET": [#"{"cmd":"ACCEPT"}"#],
        "SHOW_SESSION_KEY": [#"{"cmd":"ACCEPT"}"#],
        "VERIFY_DATA": [#"{"cmd":"DATA_VERIFIED"}"#],
    ]

    /// Sends RUN_WALLET and answers until the final message, which is returned.
    func run(_ command: String) async throws -> JSON {
        heard = []
        await client.send(command)
        return try await untilTheEnd()
    }

    /// Answers until the final message.
    func untilTheEnd() async throws -> JSON {
        while let message = await client.next() {
            guard let name = message["msg"]?.string, name != "READER", name != "STATUS" else { continue }
            // Whether a card is recognised before the workflow looks for it depends on the machine.
            let isPlain = name == "INSERT_CARD" && message["error"] == nil
            if !isPlain { heard.append(message) }
            if name == "FLOW_COMPLETE" || name == "FLOW_INTERRUPTED" { return message }
            if name == pausesAt { return message }
            if heard.count > 100 { throw WalletTestError.endless(names) }
            if let answer = try await answer(to: message, name) { await client.send(answer) }
        }
        throw WalletTestError.connectionClosed
    }

    /// The words that were shown.
    private(set) var words: [String] = []
    /// The message at which `run` returns, too.
    var pausesAt: String?

    /// Notes the words of SHOW_PAPER_WALLET.
    func noteWords(_ message: JSON) { words = (message["mnemonics"]?.array ?? []).compactMap(\.string) }
    /// What the answer to REGISTER_DEVICE says of the address, instead of the right one.
    var registeredAddress: String?

    private func answer(to message: JSON, _ name: String) async throws -> String? {
        if let knowsCard {
            switch name {
            case "INSERT_CARD": try await knowsCard.insertIfAway()
            case "ENTER_PIN":
                let pin = try await knowsCard.secrets().pin
                return #"{"cmd":"SET_PIN","value":"\#(try #require(pin))"}"#
            default: break
            }
        }
        if var list = answers[name], !list.isEmpty {
            let answer = list.count > 1 ? list.removeFirst() : list[0]
            answers[name] = list
            if name == "SHOW_PAPER_WALLET" { noteWords(message) }
            return answer
        }
        switch name {
        case "ENTER_WORDS":
            guard let positions = message["positions"]?.array?.compactMap(\.int) else {
                return #"{"cmd":"SET_WORDS","value":"\#(typedWords ?? words.joined(separator: " "))"}"#
            }
            let chosen = positions.map { words[$0 - 1] }.joined(separator: " ")
            typedCheck = chosen
            return #"{"cmd":"SET_WORDS","value":"\#(chosen)"}"#
        case "REGISTER_DEVICE":
            let address = try #require(registeredAddress ?? message["apiParams"]?["address"]?.string)
            return #"{"cmd":"DEVICE_REGISTERED","apiResponse":{"device":{"address":"\#(address)"}}}"#
        default: return nil
        }
    }

    /// The names of the received messages, in order.
    var names: [String] { heard.compactMap { $0["msg"]?.string } }

    /// The last message with this name.
    func last(_ name: String) -> JSON? { heard.last { $0["msg"] == .string(name) } }
}

extension VirtualCard {
    func keycardSecrets() -> WalletBench.Secrets {
        guard let applet = software as? VirtualApplet, applet.secrets != nil else { return WalletBench.Secrets() }
        return WalletBench.Secrets(
            isInitialized: true,
            pinTries: applet.secrets?.main.tries ?? 0,
            pukTries: applet.secrets?.puk.tries ?? 0,
            checks: (applet.secrets?.main.checks ?? 0) + (applet.secrets?.puk.checks ?? 0),
            pin: [WalletUser.pin, WalletUser.newPIN].first { applet.secrets?.main.equals(Secret($0.utf8)) == true },
            hasChosenDuressPIN: applet.secrets?.duress.equals(Secret(WalletUser.duressPIN.utf8)) == true
        )
    }

    /// Changes the version that SELECT tells.
    func tell(_ version: UInt16) { (software as? VirtualApplet)?.toldVersion = version }

    /// The answer to SELECT of the Keycard applet, outside of any reader.
    fileprivate func selection() -> [UInt8] {
        let id = KeycardParameters.applicationID
        return software.process([0x00, 0xA4, 0x04, 0x00, UInt8(id.count)] + id)
    }
}

enum WalletTestError: Error {
    case connectionClosed
    /// The workflow asks without end.
    case endless([String])
}

extension JSON {
    /// `error.code` of FLOW_INTERRUPTED.
    var code: String? { self["error"]?["code"]?.string }
    /// The bytes of a text of hexadecimal digits.
    var bytesOfHex: [UInt8]? { string.flatMap { Hex.decode($0) } }
    /// `contextEntity.entity` of a message.
    var entity: JSON? { self["contextEntity"]?["entity"] }
}
