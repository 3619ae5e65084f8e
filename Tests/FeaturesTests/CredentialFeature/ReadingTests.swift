// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ISO7816
import NFCTestSupport
import ReadersVirtual
import Server
import Store
import TestSupport
import Testing
import Text
import VirtualEID

@testable import Cards
@testable import CredentialFeature

/// When and how often a card is read, and who may use it meanwhile.
@Suite("Readings of tapped cards", .timeLimit(.minutes(5)))
@Loop struct ReadingTests {
    private static let start = #"{"cmd":"START_CREDENTIALS"}"#
    private static let stop = #"{"cmd":"STOP_CREDENTIALS"}"#
    private static let phone = #""phone":true"#

    /// A stage with a phone in a reader that the test can hold. The card is recognised, and no client watches.
    private static func held(
        _ kind: String = "pkoc"
    ) async throws -> (stage: CredentialStage, reader: HeldReader, card: VirtualCard) {
        let card = try CredentialStage.card(kind == "pkoc" ? phone : try AliroVectors.card(), kind: kind)
        let reader = HeldReader(card)
        let stage = try await CredentialStage(held: reader, aliro: try AliroVectors.site())
        reader.insert()
        await stage.wait { $0.showsCard }
        return (stage, reader, card)
    }

    // MARK: Once

    @Test(
        "a phone signs once for each time it is held to a reader, also when recognition is tried again",
        arguments: ["pkoc", "aliro"],
        ["mute", "muteAfter"]
    )
    func once(kind: String, fault: String) async throws {
        let entries = kind == "pkoc" ? Self.phone : try AliroVectors.card()
        let stage = try await CredentialStage(aliro: try AliroVectors.site(allowsFast: false))
        try await stage.tap(entries, kind: kind)
        await stage.wait { $0.showsCard }
        let recognition = try #require(await stage.server.readers?.card(in: stage.reader)?.apdus)
        await stage.remove()
        let client = try await stage.watcher()
        try await stage.tap(entries, kind: kind)
        _ = try #require(await client.next("CREDENTIAL"))
        let count = try #require(await stage.server.readers?.card(in: stage.reader)?.apdus)
        await stage.remove()
        for index in 0..<count {
            let before = stage.outcomes
            try await stage.tap(entries + #","faults":[{"afterApdu":\#(index),"do":"\#(fault)"}]"#, kind: kind)
            await stage.settle(since: before)
            #expect(try await stage.signatures() <= 1, "command \(index)")
            if index < recognition {
                #expect(await client.next("CREDENTIAL")?["verified"] == .bool(true), "command \(index)")
            }
            await stage.remove()
        }
    }

    // MARK: Cards that lie on a reader

    @Test("START_CREDENTIALS reads a card that lies on a reader", arguments: ["virtual", "NFC A", "NFC B", "held"])
    func lying(kind: String) async throws {
        let board = kind.hasPrefix("NFC") ? try EmulatedPN532() : nil
        let stage: CredentialStage
        var held: HeldReader?
        defer { withExtendedLifetime(held) {} }
        if kind == "held" {
            let made = try await Self.held()
            (stage, held) = (made.stage, made.reader)
        } else {
            stage = try await CredentialStage(on: board)
            try await stage.tap(Self.phone, technology: kind == "NFC B" ? .b : .a)
            await stage.wait { $0.showsCard }
        }
        let client = try stage.server.connect()
        await client.send(Self.start)
        #expect(await client.next("CREDENTIALS", "CREDENTIAL")?["watching"] == .bool(true))
        let first = try #require(await client.next("CREDENTIAL"))
        #expect(first["verified"] == .bool(true))
        // Each command is a wish of its own, and another client is not told.
        let other = try await stage.watcher()
        let second = try #require(await other.next("CREDENTIAL"))
        #expect(second["verified"] == .bool(true) && second["transaction"] != first["transaction"])
        #expect(await client.ask(Self.start, "CREDENTIAL")?["verified"] == .bool(true))
        for client in [client, other] {
            let late = await client.exchange().filter { $0["msg"] == .string("CREDENTIAL") }
            #expect(late.isEmpty)
        }
    }

    @Test("a client that begins to watch while a card is read is told the result of this reading")
    func shared() async throws {
        let (stage, reader, card) = try await Self.held()
        reader.holdCommand(1)
        let client = try await stage.watcher()
        await reader.arrival()
        let other = try await stage.watcher()
        reader.openGate()
        let told = try #require(await client.next("CREDENTIAL"))
        #expect(await other.next("CREDENTIAL") == told)
        #expect(try await stage.signatures(of: card) == 1)
    }

    @Test("a card that another program holds is read when the program lets go")
    func heldByProgram() async throws {
        let (stage, reader, _) = try await Self.held()
        reader.hold()
        let client = try await stage.watcher()
        await stage.wait { $0.isHindered }
        reader.letGo()
        #expect(await client.next("CREDENTIAL")?["verified"] == .bool(true))
    }

    @Test("without a working store a card is read, each time in the standard phase")
    func noStore() async throws {
        let store = StateStore(exists: { true }) { () throws(Text.Failure) in throw .storeUnavailable("broken") }
        let stage = try await CredentialStage(aliro: try AliroVectors.site(), store: store)
        try await stage.tap(try AliroVectors.card(), kind: "aliro")
        await stage.wait { $0.showsCard }
        let client = try await stage.watcher()
        let told = await client.next("CREDENTIAL")
        #expect(told?["verified"] == .bool(true) && told?["phase"] == .string("standard"))
        await stage.aliro?.settled()
        #expect(await client.ask(Self.start, "CREDENTIAL")?["verified"] == .bool(true))
    }

    // MARK: Others who want the card

    /// Reads something from eID cards, which workflows use.
    private struct Sample: TapReader {
        let cardKind: (any CardKind)? = nil
        let kinds = ["eid"]
        let acceptsCards = true

        func read(_ channel: any CardChannel, _ tap: TapRequest) async throws(CardError) -> TapReport? {
            _ = try await channel.transmit(CommandAPDU(0x00, 0xA4, 0x00, 0x0C, data: [0x3F, 0x00]))
            return TapReport(technology: "sample", result: .failed("sample"))
        }
    }

    @Test("a workflow and a reading wait for each other, and no client is told that the reader is busy")
    func workflow() async throws {
        let reader = HeldReader(try VirtualCard())
        let stage = try await CredentialStage(held: reader, moreTapReaders: [Sample()])
        reader.insert()
        await stage.wait { $0.showsCard }
        // The workflow comes while the card is read.
        reader.holdCommand(0)
        let watcher = try await stage.watcher()
        await reader.arrival()
        let client = try stage.server.connect()
        await client.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        _ = await client.exchange()
        _ = await watcher.exchange()
        #expect(!client.hasReceived("ENTER_PIN") && !client.hasReceived("error"))
        #expect(!client.hasReceived("busy") && !watcher.hasReceived("busy"))
        reader.openGate()
        #expect(await watcher.next("CREDENTIAL")?["protocol"] == .string("sample"))
        #expect(await client.next("ENTER_PIN") != nil)
        // The reading waits for the end of the workflow.
        await watcher.send(Self.start)
        _ = await watcher.exchange()
        #expect(watcher.hasReceived(#""busy":true"#))
        await client.send(#"{"cmd":"CANCEL"}"#)
        while let message = await client.next("CHANGE_PIN"), message["success"] == nil {}
        #expect(await watcher.next("CREDENTIAL")?["protocol"] == .string("sample"))
    }

    @Test("a device that borrows a card waits while the card is read, and a reading waits for the device")
    func lent() async throws {
        let (stage, reader, _) = try await Self.held()
        reader.holdCommand(1)
        let client = try await stage.watcher()
        await reader.arrival()
        let registry = stage.server.registry
        let borrower = Changes()
        let lending = Task { @Loop in
            try await registry.lend(HeldReader.name, to: ObjectIdentifier(borrower), called: "phone")
        }
        reader.openGate()
        #expect(await client.next("CREDENTIAL")?["verified"] == .bool(true))
        let lease = try await lending.value
        await client.send(Self.start)
        let late = await client.exchange().filter { $0["msg"] == .string("CREDENTIAL") }
        #expect(late.isEmpty)
        await lease.release(removingVirtualCard: false)
        #expect(await client.next("CREDENTIAL")?["verified"] == .bool(true))
    }

    // MARK: Readings that end

    struct Row: Sendable, CustomTestStringConvertible {
        let kind: String
        let ending: String
        /// The number of the command that is under way; nil: another program holds the card.
        let command: Int?

        var testDescription: String { "\(kind), \(ending) at \(command.map(String.init) ?? "connect")" }
    }

    nonisolated static let rows: [Row] = FullTables.rows(
        of: ["pkoc", "aliro"].flatMap { kind in
            ["STOP_CREDENTIALS", "close", "permission"].flatMap { ending in
                ([nil, 0, 1, 2] + (kind == "aliro" ? [3] : [])).map { Row(kind: kind, ending: ending, command: $0) }
            }
        }
    ) { [$0.kind, $0.ending, "\($0.command ?? -1)"] }

    /// The rules for the client of a row.
    private final class Rules {
        var permissions = Permissions.all
    }

    @Test("a reading that no client wants any more ends, and the next client gets the credential", arguments: rows)
    func ended(row: Row) async throws {
        let (stage, reader, card) = try await Self.held(row.kind)
        let rules = Rules()
        let client = try stage.server.connect(uid: nil) { rules.permissions }
        if let number = row.command { reader.holdCommand(number) } else { reader.hold() }
        _ = await client.ask(Self.start, "CREDENTIALS")
        if row.command == nil { await stage.wait { $0.isHindered } } else { await reader.arrival() }
        switch row.ending {
        case "close":
            client.close()
            await stage.server.clients(0)
        case "permission":
            rules.permissions.remove(.credentials)
            await stage.server.server.evaluatePermissions()
        default: _ = await client.ask(Self.stop, "CREDENTIALS")
        }
        reader.openGate()
        await stage.server.released(HeldReader.name)
        reader.letGo()
        // The command under way is the last one.
        #expect(try await stage.signatures(of: card) == (row.command ?? 0 < 2 ? 0 : 1))
        let next = try stage.server.connect()
        let shown = await next.answer(to: #"{"cmd":"GET_READER","name":"\#(HeldReader.name)"}"#)
        #expect(shown?["card"]?["kind"] == .string(row.kind))
        await next.send(Self.start)
        #expect(await next.next("CREDENTIAL")?["verified"] == .bool(true))
        #expect(!client.hasReceived(#""CREDENTIAL""#))
    }

    @Test(
        "clients that come and go leave the card usable on each kind of reader",
        arguments: ["virtual", "NFC A", "NFC B"],
        ["STOP_CREDENTIALS", "CANCEL", "close"]
    )
    func comeAndGo(kind: String, ending: String) async throws {
        let stage = try await CredentialStage(on: kind == "virtual" ? nil : try EmulatedPN532())
        try await stage.tap(Self.phone, technology: kind == "NFC B" ? .b : .a)
        await stage.wait { $0.showsCard }
        for _ in 0..<10 {
            let client = try stage.server.connect()
            await client.send([Self.start] + (ending == "close" ? [] : [#"{"cmd":"\#(ending)"}"#]))
            client.close()
        }
        await stage.server.clients(0)
        let next = try await stage.watcher()
        #expect(await next.next("CREDENTIAL")?["verified"] == .bool(true))
        #expect(stage.outcomes.losses == 0)
    }
}
