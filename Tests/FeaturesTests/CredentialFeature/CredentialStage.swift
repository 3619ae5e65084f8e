// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Drivers
import EID
import Foundation
import Host
import NFCTestSupport
import Readers
import ReadersNFC
import ReadersVirtual
import Server
import Store
import Taps
import TestSupport
import Testing
import Text
import VirtualTaps

@testable import Cards
@testable import CredentialFeature

/// Tests/Vectors/pkoc-nfc.json.
enum Vectors {
    static func all() throws -> JSON { try vectorFile("pkoc-nfc.json") }

    /// The string at a path of members.
    static func text(_ path: String...) throws -> String {
        var json = try all()
        for key in path { json = json[key] ?? .null }
        let text = json.string
        return try #require(text)
    }

    /// The issuer of the certificate.
    static func issuer() throws -> PKOCIssuer {
        let point = Hex.decode(try text("cvc", "issuer", "compressed")) ?? []
        let key = try #require(PKOCIssuer.Key(point))
        return try #require(PKOCIssuer(reference: Array(try text("cvc", "iir").utf8), key: key))
    }

    /// The entry `key` of the card of the own example.
    static func plainCard() throws -> String { #""key":"\#(try text("own", "card", "private"))""# }

    /// The entries of the card with the certificate.
    static func certifiedCard() throws -> String {
        let (key, certificate) = (try text("cvc", "subject", "private"), try text("cvc", "certificate"))
        return #""key":"\#(key)","certificate":"\#(certificate)""#
    }
}

/// Tests/Vectors/aliro.json.
enum AliroVectors {
    /// The readers of the vectors.
    static func site(
        credentials: [ECPublicKey] = [],
        isValidated: Bool = false,
        allowsFast: Bool = true
    ) throws -> AliroSite {
        let vectors = try vectorFile("aliro.json")
        let identifier = try vectors.bytes("identifier")
        let scalar = Secret(try vectors.object("reader").bytes("private"))
        return AliroSite(
            key: try ECPrivateKey(scalar, on: try Curve.secp256r1.group),
            group: Array(identifier.prefix(16)),
            subgroup: Array(identifier.suffix(16)),
            credentials: credentials,
            isValidated: isValidated,
            allowsFast: allowsFast
        )
    }

    /// The same readers with another identifier.
    static func otherSite() throws -> AliroSite {
        let scalar = Secret(try vectorFile("aliro.json").object("reader").bytes("private"))
        return AliroSite(key: try ECPrivateKey(scalar, on: try Curve.secp256r1.group), group: [7])
    }

    /// The key of the card, as 65 bytes in hexadecimal.
    static func key() throws -> String { Hex.encode(try vectorFile("aliro.json").object("card").bytes("public")) }

    /// The entries of a card with this key that knows the readers.
    static func card(_ more: String = "") throws -> String {
        let scalar = Hex.encode(try vectorFile("aliro.json").object("card").bytes("private"))
        let reader = Hex.encode(try site().publicKey.compressedPoint)
        return #""key":"\#(scalar)","reader":"\#(reader)""# + (more.isEmpty ? "" : ",") + more
    }
}

extension JSON {
    /// The message without `number` and `time`.
    var withoutPlace: JSON {
        .object((members ?? []).filter { $0.key != "number" && $0.key != "time" && $0.key != "uptime" })
    }
}

/// A server that reads credentials, with one reader: a virtual one, an emulated PN532, or one that a test can hold.
@Loop final class CredentialStage {
    let server: TestServer
    let board: EmulatedPN532?
    let reader: String
    let aliro: AliroTapReader?

    init(
        _ site: PKOCSite = PKOCSite(),
        on board: EmulatedPN532? = nil,
        held: HeldReader? = nil,
        permissions: Permissions = .all,
        aliro: AliroSite? = nil,
        store: StateStore = StateStore { () throws(Failure) -> Store? in nil },
        today: @escaping @Sendable () -> CVDate = { CVDate(year: 2026, month: 11, day: 22) ?? .earliest },
        moreCards: [any VirtualCardKind] = [],
        moreTapReaders: [any TapReader] = [],
        listed: ListedCredentials? = nil,
        panelReaders: Set<String> = [],
        questionTime: Int64 = 3_600_000,
        moreFeatures: (ReaderRegistry) -> [any Feature] = { _ in [] }
    ) async throws {
        self.board = board
        reader = board.map { "pn532_uart:\($0.path)" } ?? (held == nil ? "Simulator" : HeldReader.name)
        let backend: (any ReaderBackend)? =
            board.map { DriverBackend.nfc(devices: [$0.connection], heartbeat: .patient) } ?? held?.backend
        let aliro = aliro.map { AliroTapReader($0, store, listed: listed) }
        self.aliro = aliro
        server = try await TestServer(
            readers: backend == nil ? 1 : 0,
            backends: backend.map { [$0] } ?? [],
            permissions: permissions,
            moreCards: [VirtualPKOCKind(), VirtualAliroKind(), VirtualTagKind()] + moreCards,
            moreFeatures: {
                var tapReaders = moreTapReaders
                if let aliro { tapReaders.append(aliro) }
                tapReaders += [PKOCTapReader(site, today: today), TagTapReader()]
                return moreFeatures($0) + [
                    CredentialFeature(
                        $0,
                        site,
                        tapReaders,
                        listed: listed,
                        panelReaders: panelReaders,
                        questionTime: questionTime
                    )
                ]
            }
        )
        await server.ready([reader])
    }

    /// A client that has said START_CREDENTIALS.
    func watcher() async throws -> TestClient {
        let client = try server.connect()
        _ = try #require(await client.ask(#"{"cmd":"START_CREDENTIALS"}"#, "CREDENTIALS"))
        return client
    }

    var feature: CredentialFeature? { server.server.features.compactMap { $0 as? CredentialFeature }.first }

    /// The object `card` of SET_CARD with these entries.
    private static func description(_ entries: String, _ kind: String) throws -> JSON {
        try JSON(#"{"kind":"\#(kind)"\#(entries.isEmpty ? "" : ",")\#(entries)}"#.utf8)
    }

    /// Makes a card of these entries of `card`.
    static func card(_ entries: String, kind: String = "pkoc") throws -> VirtualCard {
        let kinds = VirtualCardKinds([VirtualPKOCKind(), VirtualAliroKind(), VirtualTagKind()])
        return try kinds.describe(simulator: nil, card: try description(entries, kind)).makeCard()
    }

    /// The number of signatures of a card; without one, of the card in the virtual reader.
    func signatures(of card: VirtualCard? = nil) async throws -> Int {
        var card = card
        if card == nil { card = await server.readers?.card(in: reader) }
        let counters = try #require(await card?.counters)
        return try #require(JSON.object(counters)["signatures"]?.int)
    }

    /// Puts a new card on the reader.
    func tap(_ entries: String, kind: String = "pkoc", technology: PICC.Technology = .a) async throws {
        if let board {
            board.field.insert(.virtual(try Self.card(entries, kind: kind), technology))
        } else {
            let target = try #require(server.registry[reader])
            let readers = try #require(server.readers)
            let card = try Self.description(entries, kind)
            #expect(try await server.registry.insert(try readers.describe(simulator: nil, card: card), into: target))
        }
    }

    /// Takes the card away, and waits until the server has noticed.
    func remove() async {
        if let board { board.field.remove() } else { await server.withdraw() }
        await wait { $0.insertion == nil }
    }

    /// The cards so far: those that left before they were recognised, and those that were recognised.
    struct Outcomes {
        var losses = 0
        var recognised = 0
    }

    var outcomes: Outcomes {
        var outcomes = Outcomes(losses: server.registry.unseenLosses[reader] ?? 0)
        for sample in server.registry.insertions.metric.samples {
            if case .whole(let count) = sample.value { outcomes.recognised += count }
        }
        return outcomes
    }

    /// Waits until a card is recognised and read, or has left before it was, also if that happened before this call.
    /// `before` are the outcomes before the card.
    func settle(since before: Outcomes) async {
        var wasShown = false
        await wait { [self] reader in
            let now = outcomes
            wasShown = wasShown || reader.showsCard || now.recognised > before.recognised
            return wasShown && reader.owner == nil || now.losses > before.losses
        }
    }

    func wait(until condition: (Reader) -> Bool) async {
        while let reader = server.registry[reader], !condition(reader) { await server.registry.nextChange() }
    }
}
