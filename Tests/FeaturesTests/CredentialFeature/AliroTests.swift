// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Concurrency
import Crypto
import EID
import Host
import NFCTestSupport
import ReadersVirtual
import Store
import Synchronization
import Taps
import TestSupport
import Testing
import Text
import Vault

@testable import Cards
@testable import CredentialFeature
@testable import badgectl

@Suite("Cards with Aliro that people tap", .timeLimit(.minutes(5)))
@Loop struct AliroTests {
    @Test("a watching client gets the key with the members of PKOC, and READER has only the kind")
    func credential() async throws {
        let stage = try await CredentialStage(aliro: try AliroVectors.site())
        let client = try await stage.watcher()
        let other = try stage.server.connect()
        try await stage.tap(try AliroVectors.card(), kind: "aliro")
        #expect(await client.next("READER")?["card"] == #"{"kind":"aliro","versions":["1.0"]}"#)
        let message = try #require(await client.next("CREDENTIAL"))
        let key = try AliroVectors.key()
        let members = try #require(message.members).map(\.key)
        #expect(
            members == [
                "msg", "number", "time", "uptime", "reader", "protocol", "verified", "phase", "numbers", "publicKey",
                "certificate", "transaction",
            ]
        )
        #expect(message["reader"] == .string("Simulator"))
        #expect(message["protocol"] == .string("Aliro"))
        #expect(message["verified"] == .bool(true))
        #expect(message["phase"] == .string("standard"))
        #expect(message["certificate"] == .null)
        #expect(message["publicKey"] == .string(key))
        let number = CredentialNumber(publicKey: Hex.decode(key) ?? [], bits: 64)
        #expect(message["numbers"]?["bits64"]?.string == number?.hex)
        #expect(message["transaction"]?.string?.count == 32)
        #expect(await other.next("READER") != nil)
        _ = await other.exchange()
        #expect(!other.hasReceived("CREDENTIAL") && !other.hasReceived(key))
    }

    @Test(
        "each tap has a transaction of its own; later taps are the fast phase, over a PN532, too",
        arguments: [false, true]
    )
    func fast(isTypeB: Bool) async throws {
        let board = try EmulatedPN532()
        let stage = try await CredentialStage(on: board, aliro: try AliroVectors.site())
        let client = try await stage.watcher()
        let card = try CredentialStage.card(try AliroVectors.card(), kind: "aliro")
        var transactions: Set<String> = []
        var phases: [String?] = []
        for _ in 1...3 {
            board.field.insert(.virtual(card, isTypeB ? .b : .a))
            let message = try #require(await client.next("CREDENTIAL"))
            #expect(message["publicKey"]?.string == (try AliroVectors.key()))
            transactions.insert(message["transaction"]?.string ?? "")
            phases.append(message["phase"]?.string)
            await stage.remove()
        }
        #expect(transactions.count == 3)
        #expect(phases == ["standard", "fast", "fast"])
    }

    @Test("without a watching client the card only answers SELECT")
    func unwanted() async throws {
        let stage = try await CredentialStage(aliro: try AliroVectors.site())
        try await stage.tap(try AliroVectors.card(), kind: "aliro")
        await stage.wait { $0.showsCard }
        let card = try #require(await stage.server.readers?.card(in: "Simulator"))
        #expect(await card.counters.contains(JSON.Member("signatures", .number("0"))))
    }

    @Test("without a key of the readers a card with Aliro is not read")
    func notConfigured() async throws {
        let stage = try await CredentialStage()
        let client = try await stage.watcher()
        try await stage.tap(try AliroVectors.card(), kind: "aliro")
        await stage.wait { $0.showsCard }
        #expect(await client.next("READER")?["card"] == .object([]))
        _ = await client.exchange()
        #expect(!client.hasReceived(#""CREDENTIAL""#))
    }

    @Test(
        "a wrong answer is reported as wrong, without the key",
        arguments: [
            (#""signature":"wrong""#, "wrongSignature"), (#""versions":"0200""#, "unsupported"),
            (#""group":"00000000000000000000000000000000""#, "refused"),
        ]
    )
    func failed(entries: String, reason: String) async throws {
        let stage = try await CredentialStage(aliro: try AliroVectors.site())
        let client = try await stage.watcher()
        try await stage.tap(try AliroVectors.card(entries), kind: "aliro")
        let expected: JSON = .object([
            .init("msg", .string("CREDENTIAL")), .init("reader", .string("Simulator")),
            .init("protocol", .string("Aliro")), .init("verified", .bool(false)), .init("reason", .string(reason)),
        ])
        #expect(await client.next("CREDENTIAL")?.withoutPlace == expected)
    }

    // MARK: Aliro and PKOC on one card

    @Test("a card with Aliro and PKOC is read with Aliro, and with PKOC if it does not know the readers")
    func both() async throws {
        let stage = try await CredentialStage(aliro: try AliroVectors.site())
        let client = try await stage.watcher()
        try await stage.tap(try AliroVectors.card(#""pkoc":true"#), kind: "aliro")
        #expect(await client.next("CREDENTIAL")?["protocol"] == .string("Aliro"))
        await stage.remove()
        // The card has no member `reader`. Its kind does not depend on what is read.
        try await stage.tap(#""pkoc":true"#, kind: "aliro")
        let message = try #require(await client.next("CREDENTIAL"))
        #expect(message["protocol"] == .string("pkoc-se1") && message["verified"] == .bool(true))
        #expect(!client.hasReceived(#""kind":"pkoc""#))
        await stage.remove()
        // PKOC never follows a wrong signature.
        try await stage.tap(try AliroVectors.card(#""pkoc":true,"signature":"wrong""#), kind: "aliro")
        let wrong = try #require(await client.next("CREDENTIAL"))
        #expect(wrong["protocol"] == .string("Aliro") && wrong["reason"] == .string("wrongSignature"))
        await stage.remove()
        try await stage.tap(try Vectors.plainCard())
        #expect(await client.next("CREDENTIAL")?["protocol"] == .string("pkoc-se1"))
    }

    @Test("validated mode: known keys alone count, and a card that goes on to PKOC needs a certificate")
    func validated() async throws {
        let known = try ECPublicKey(Hex.decode(try AliroVectors.key()) ?? [], on: .secp256r1)
        let site = PKOCSite(isValidated: true)
        let stage = try await CredentialStage(
            site,
            aliro: try AliroVectors.site(credentials: [known], isValidated: true)
        )
        let client = try await stage.watcher()
        try await stage.tap(try AliroVectors.card(), kind: "aliro")
        #expect(await client.next("CREDENTIAL")?["verified"] == .bool(true))
        await stage.remove()
        let reader = Hex.encode(try AliroVectors.site().publicKey.compressedPoint)
        try await stage.tap(#""reader":"\#(reader)""#, kind: "aliro")
        let message = try #require(await client.next("CREDENTIAL"))
        #expect(message["reason"] == .string("unknownKey") && message["publicKey"] == nil)
        await stage.remove()
        try await stage.tap(#""pkoc":true"#, kind: "aliro")
        #expect(await client.next("CREDENTIAL")?["reason"] == .string("noCertificate"))
        #expect(await stage.feature?.health().map(\.ok) == [true])
        let empty = try await CredentialStage(site, aliro: try AliroVectors.site(isValidated: true))
        #expect(await empty.feature?.health().map(\.ok) == [false])
    }

    // MARK: What is kept for the fast phase

    private static func store(in folder: TemporaryFolder) -> StateStore {
        StateStore(exists: { Store.exists(in: folder.path) }) { () async throws(Text.Failure) in
            try await onceLeft { () throws(Text.Failure) in try Store(folder: folder.path) }
        }
    }

    /// Taps a card in a new daemon with this store.
    private static func tap(_ card: VirtualCard, _ store: StateStore, _ site: AliroSite) async throws -> String? {
        let board = try EmulatedPN532()
        let stage = try await CredentialStage(on: board, aliro: site, store: store)
        let client = try await stage.watcher()
        board.field.insert(.virtual(card, .a))
        let message = try #require(await client.next("CREDENTIAL"))
        await stage.remove()
        await stage.aliro?.settled()
        return message["phase"]?.string
    }

    @Test("a new daemon uses what an earlier one has kept, unless the readers have another key or identifier")
    func kept() async throws {
        let folder = try TemporaryFolder()
        // A store is open once, so the daemons share it.
        let state = Self.store(in: folder)
        let card = try CredentialStage.card(try AliroVectors.card(), kind: "aliro")
        let site = try AliroVectors.site()
        #expect(try await Self.tap(card, state, site) == "standard")
        #expect(try await Self.tap(card, state, site) == "fast")
        let store = try await state.required()
        let space = StoreSpace("aliro bonds")
        let names = try await store.names(in: space)
        #expect(names.count == 1)
        // The name of an entry does not contain the key.
        let key = try AliroVectors.key()
        #expect(!names[0].contains(key.dropFirst(2).prefix(16)))
        #expect(try await Self.tap(card, state, try AliroVectors.otherSite()) == "standard")
        let now = try await store.names(in: space)
        #expect(now.count == 1 && now != names)
    }

    @Test("switched off, the fast phase is not used, and nothing is kept")
    func off() async throws {
        let folder = try TemporaryFolder()
        let state = Self.store(in: folder)
        let card = try CredentialStage.card(try AliroVectors.card(), kind: "aliro")
        let site = try AliroVectors.site(allowsFast: false)
        for _ in 1...2 { #expect(try await Self.tap(card, state, site) == "standard") }
        #expect(!Store.exists(in: folder.path))
    }

    @Test("the oldest bonds are dropped when there are too many")
    func bounded() async throws {
        let folder = try TemporaryFolder()
        let (state, site) = (Self.store(in: folder), try AliroVectors.site())
        let bonds = AliroBonds(state, site)
        _ = await bonds.known()
        var keys: [[UInt8]] = []
        for _ in 0..<AliroBonds.maximum + 5 {
            let key = try ECPrivateKey(on: try Curve.secp256r1.group).publicKey.uncompressed
            keys.append(key)
            let made = AliroBond(Secret(key + [UInt8](repeating: 1, count: 32)))
            bonds.keep(try #require(made))
        }
        await bonds.settled()
        let wanted = Array(keys.suffix(AliroBonds.maximum))
        let isBounded = await bonds.known().map(\.key.uncompressed) == wanted
        #expect(isBounded)
        let isKept = Set(await AliroBonds(state, site).known().map(\.key.uncompressed)) == Set(wanted)
        #expect(isKept)
    }

    private static func bond() throws -> AliroBond {
        let key = try ECPrivateKey(on: try Curve.secp256r1.group).publicKey.uncompressed
        let made = AliroBond(Secret(key + [UInt8](repeating: 1, count: 32)))
        return try #require(made)
    }

    @Test("if the names of bonds cannot be computed, those in the store are left alone")
    func noName() async throws {
        let folder = try TemporaryFolder()
        let (state, space) = (Self.store(in: folder), StoreSpace("aliro bonds"))
        let store = try await state.required()
        try await store.set("other", in: space, to: SecretBox(Secret([1])))
        let bonds = AliroBonds(state, prefix: nil)
        _ = await bonds.known()
        bonds.keep(try Self.bond())
        await bonds.settled()
        let count = await bonds.known().count
        #expect(count == 1)
        #expect(try await store.names(in: space) == ["other"])
    }

    @Test("bonds that cannot be read at one tap are read at the next, and those of the time between stay")
    func readAgain() async throws {
        let folder = try TemporaryFolder()
        let (good, site) = (Self.store(in: folder), try AliroVectors.site())
        let earlier = AliroBonds(good, site)
        earlier.keep(try Self.bond())
        await earlier.settled()
        let store = try await good.required()
        let isBroken = Mutex(true)
        let state = StateStore { () throws(Text.Failure) -> Store? in
            guard !isBroken.withLock({ $0 }) else { throw .storeUnavailable("broken") }
            return store
        }
        let bonds = AliroBonds(state, site)
        let none = await bonds.known().count
        #expect(none == 0)
        isBroken.withLock { $0 = false }
        bonds.keep(try Self.bond())
        let both = await bonds.known().count
        #expect(both == 2)
    }

    // MARK: Client library and badgectl

    @Test("the client library and badgectl report Aliro in the same way as PKOC")
    func library() async throws {
        let stage = try await CredentialStage(aliro: try AliroVectors.site())
        let connection = try await DaemonConnection.connect(to: try stage.server.listen(), keepsEvents: true)
        try await connection.startCredentials()
        var found: [Credential] = []
        for card in [try AliroVectors.card(), try AliroVectors.card(#""signature":"wrong""#)] {
            try await stage.tap(card, kind: "aliro")
            for await event in connection.events {
                guard let credential = event.message as? Credential else { continue }
                found.append(credential)
                break
            }
            await stage.remove()
        }
        let number = try #require(CredentialNumber(publicKey: Hex.decode(try AliroVectors.key()) ?? [], bits: 64))
        #expect(found[0].technology == "Aliro" && found[0].phase == "standard" && found[0].transaction.count == 16)
        #expect(
            found.map(CredentialsCommand.line) == [
                "Simulator: \(number.hex) (\(number.decimal)), Aliro",
                "Simulator: no credential, wrong signature, Aliro",
            ]
        )
        connection.close()
        await stage.server.stopListening()
    }
}
