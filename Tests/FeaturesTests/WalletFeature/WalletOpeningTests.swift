// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import HDWallet
import Keycard
import ReadersVirtual
import Store
import TestSupport
import Testing
import Text
import VirtualKeycard
import WalletFeature

/// An attempt to open a Keycard that ends from this side says nothing about the card.
@Suite("Wallet workflows that end while their card is opened", .timeLimit(.minutes(5)))
@Loop struct WalletOpeningTests {
    private nonisolated static let words = Array(repeating: "abandon", count: 11).joined(separator: " ") + " about"

    struct Row: Sendable, CustomTestStringConvertible {
        let workflow: String
        let version: String
        let ending: String
        /// The number of the command to the card that is under way; nil: another program holds the card.
        let command: Int?

        var testDescription: String { "\(workflow) \(version) \(ending) at \(command.map(String.init) ?? "connect")" }
    }

    nonisolated static let rows: [Row] = FullTables.rows(
        of: ["RESET_PIN", "ACTIVATE_USER", "WALLET_SIGN"].flatMap { workflow in
            generations.flatMap { version in
                ["CANCEL in one write", "CANCEL", "close"].flatMap { ending in
                    // A card with certificates takes three commands before its PIN.
                    ([nil, 0, 1, 2] + (version == "4.0" ? [] : [3])).map {
                        Row(workflow: workflow, version: version, ending: ending, command: $0)
                    }
                }
            }
        }
    ) { [$0.workflow, $0.version, $0.ending, "\($0.command ?? -1)"] }

    @Test("the next client gets its question, READER shows the card, and no try is spent", arguments: rows)
    func ended(row: Row) async throws {
        let description = #"{"kind":"keycard","version":"\#(row.version)","words":"\#(Self.words)"}"#
        let kinds = VirtualReaders(count: 1, kinds: [VirtualKeycardKind()])
        let made = try kinds.describe(simulator: nil, card: try JSON(description.utf8)) as? any VirtualCardDescription
        let card = try #require(made).makeCard()
        let reader = HeldReader(card)
        let trust = KeycardTrust(authorities: [try VirtualKeycardDescription.authority().publicKey.compressed])
        let folder = try TemporaryFolder()
        let store = StateStore(folder: folder)
        let server = try await TestServer(readers: 0, backends: [reader.backend]) {
            [WalletFeature($0, store, trust: trust)]
        }
        await server.ready([HeldReader.name])
        reader.insert()
        let watcher = try server.connect()
        while let seen = await watcher.next("READER"), seen["card"]?["kind"] == nil {}

        let isOperation = row.workflow == "WALLET_SIGN"
        let run =
            isOperation
            ? #"{"cmd":"WALLET_SIGN","message":"badged"}"#
            : #"{"cmd":"RUN_WALLET","workflow":"\#(row.workflow)","challenge":"badged"}"#
        let client = try server.connect()
        if isOperation {
            let start = #"{"cmd":"WALLET_INIT","mode":"MYKEYSimple","dappName":"badged"}"#
            #expect(await client.ask(start, "WALLET_READY")?["error"] == nil)
        }
        let isAtOnce = row.ending == "CANCEL in one write"
        if let number = row.command { reader.holdCommand(number) } else { reader.hold() }
        await client.send(isAtOnce ? [run, #"{"cmd":"CANCEL"}"#] : [run])
        if !isAtOnce {
            switch row.workflow {
            case "ACTIVATE_USER":
                _ = await client.next("VERIFY_DATA")
                await client.send(#"{"cmd":"DATA_VERIFIED"}"#)
            case "WALLET_SIGN":
                _ = await client.next("WALLET_REQUEST")
                await client.send(#"{"cmd":"ACCEPT"}"#)
            default: break
            }
            if row.command == nil {
                while let told = await client.next("INSERT_CARD"), told["reader"] == nil {}
            } else {
                await reader.arrival()
            }
            if row.ending == "CANCEL" { await client.send(#"{"cmd":"CANCEL"}"#) } else { client.close() }
        }
        reader.openGate()
        if row.ending == "close" {
            await server.clients(1)
        } else {
            _ = await client.next("FLOW_INTERRUPTED", "WALLET_RESULT")
        }
        await server.released(HeldReader.name)
        reader.letGo()

        let shown = await watcher.answer(to: #"{"cmd":"GET_READER","name":"Desk"}"#)
        #expect(shown?["card"]?["kind"] == .string("keycard"))
        let user = try WalletUser(server.connect())
        user.pausesAt = "ENTER_PIN"
        let asked = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(asked["msg"] == .string("ENTER_PIN"), "\(user.names)")
        let secrets = await card.keycardSecrets()
        #expect((secrets.pinTries, secrets.pukTries, secrets.checks) == (3, 5, 0))
    }
}
