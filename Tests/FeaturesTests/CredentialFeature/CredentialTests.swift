// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CredentialFeature
import Crypto
import EID
import Host
import Keycard
import NFCTestSupport
import Readers
import ReadersVirtual
import Server
import Store
import Taps
import TestSupport
import Testing
import Text
import Vault
import VirtualKeycard
import VirtualTaps
import WalletFeature

@testable import Cards

@Suite("Credentials that people tap", .timeLimit(.minutes(5)))
@Loop struct CredentialTests {
    private let stage: CredentialStage
    private let client: TestClient

    init() async throws {
        stage = try await CredentialStage()
        client = try await stage.watcher()
    }

    @Test("a watching client gets the number, and READER has only the kind")
    func credential() async throws {
        let other = try stage.server.connect()
        try await stage.tap(try Vectors.plainCard())
        #expect(await client.next("READER")?["card"] == #"{"kind":"pkoc","versions":["1.0"]}"#)
        let message = try #require(await client.next("CREDENTIAL"))
        #expect(message["reader"] == .string("Simulator"))
        #expect(message["protocol"] == .string("pkoc-se1"))
        #expect(message["verified"] == .bool(true))
        #expect(message["certificate"] == .null)
        #expect(message["numbers"] == (try Vectors.all())["own"]?["identifiers"].map(Self.sorted))
        #expect(message["publicKey"]?.string == (try Vectors.text("own", "card", "public")))
        #expect(message["transaction"]?.string?.count == 32)
        #expect(await other.next("READER") != nil)
        _ = await other.exchange()
        #expect(!other.hasReceived("CREDENTIAL"))
        #expect(!other.hasReceived(try Vectors.text("own", "identifiers", "bits64")))
    }

    /// The numbers in the order of the message.
    private static func sorted(_ numbers: JSON) -> JSON {
        let keys = CredentialNumber.lengths.map { "bits\($0)" } + ["decimal64"]
        return .object(keys.map { JSON.Member($0, numbers[$0] ?? .null) })
    }

    @Test("each tap has a transaction of its own, also with a phone, which signs once per activation")
    func fresh() async throws {
        var transactions: Set<String> = []
        for _ in 1...3 {
            try await stage.tap(#""phone":true"#)
            let message = try #require(await client.next("CREDENTIAL"))
            #expect(message["verified"] == .bool(true))
            transactions.insert(message["transaction"]?.string ?? "")
            await stage.remove()
        }
        #expect(transactions.count == 3)
    }

    @Test("a card that was read is reset, so the next program can read it")
    func reset() async throws {
        try await stage.tap(#""phone":true"#)
        _ = try #require(await client.next("CREDENTIAL"))
        let card = try #require(await stage.server.readers?.card(in: "Simulator"))
        let link = ScriptedConnection(to: card)
        let reader = try #require(try await PKOCReader.select(on: link))
        guard case .credential = try await reader.read(for: PKOCSite(), on: .earliest) else {
            throw Unexpected("the card has signed in this activation")
        }
    }

    @Test("without a watching client the card only answers SELECT, and nothing is signed")
    func unwanted() async throws {
        try await stage.tap("")
        _ = try #require(await client.next("CREDENTIAL"))
        let wanted = try #require(await stage.server.readers?.card(in: "Simulator")?.apdus)
        await stage.remove()
        let state = await client.ask(#"{"cmd":"STOP_CREDENTIALS"}"#, "CREDENTIALS")
        #expect(state == #"{"msg":"CREDENTIALS","watching":false,"validated":false,"issuers":0}"#)
        try await stage.tap("")
        await stage.wait { $0.showsCard }
        let card = try #require(await stage.server.readers?.card(in: "Simulator"))
        // The second SELECT, GET DATA and AUTHENTICATE are missing.
        #expect(await card.apdus == wanted - 3)
        #expect(await card.counters.last == JSON.Member("signatures", .number("0")))

        // The end of a client that watches has the same effect.
        let last = try await stage.watcher()
        last.close()
        await stage.server.clients(1)
        await stage.remove()
        try await stage.tap("")
        await stage.wait { $0.showsCard }
        #expect(await stage.server.readers?.card(in: "Simulator")?.apdus == wanted - 3)
    }

    @Test("the commands need the permission credentials, which is not granted by default")
    func permission() async throws {
        #expect(!AccessPolicy.defaultPermissions.contains(.credentials))
        let stage = try await CredentialStage(permissions: AccessPolicy.defaultPermissions)
        let client = try stage.server.connect()
        for name in ["START_CREDENTIALS", "STOP_CREDENTIALS"] {
            let answer = await client.ask(#"{"cmd":"\#(name)"}"#, "ACCESS_DENIED")
            #expect(answer?["error"] == .string(name))
            #expect(answer?["missing"] == .array([.string("credentials")]))
        }
    }

    @Test("a wrong or repeated signature is reported as wrong, without the key", arguments: ["wrong", "replayed"])
    func wrongSignature(signature: String) async throws {
        let board = try EmulatedPN532()
        let stage = try await CredentialStage(on: board)
        let client = try await stage.watcher()
        let card = try CredentialStage.card(#""signature":"\#(signature)""#)
        board.field.insert(.virtual(card, .a))
        var message = try #require(await client.next("CREDENTIAL"))
        if signature == "replayed" {
            // The first signature of a card repeats nothing.
            #expect(message["verified"] == .bool(true))
            await stage.remove()
            board.field.insert(.virtual(card, .a))
            message = try #require(await client.next("CREDENTIAL"))
        }
        let expected: JSON = .object([
            .init("msg", .string("CREDENTIAL")), .init("reader", .string(stage.reader)),
            .init("protocol", .string("pkoc-se1")), .init("verified", .bool(false)),
            .init("reason", .string("wrongSignature")),
        ])
        #expect(message.withoutPlace == expected)
    }

    @Test("SET_CARD inserts a virtual PKOC card, which is read, and which no workflow takes")
    func setCard() async throws {
        _ = try #require(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD"))
        await client.send(#"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"pkoc"}}"#)
        await client.wait { client.hasReceived(#""CREDENTIAL""#) && client.hasReceived("is not an eID card") }
        // The card is of no use for workflows, so SET_CARD may replace it.
        await client.send(#"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"pkoc",\#(try Vectors.plainCard())}}"#)
        let number = try Vectors.text("own", "identifiers", "bits64")
        await client.wait { client.hasReceived(number) }
    }

    @Test(
        "a wrong description of a virtual card is refused by the name of its entry",
        arguments: [
            (#""key":"00""#, "card.key is not 32 bytes in hexadecimal"),
            (#""versions":"01""#, "card.versions is not one to eight versions of two bytes"),
            (#""partLength":0"#, "card.partLength is not a whole number from 1 to 256"),
            (#""signature":"good""#, "card.signature is not right, wrong or replayed"),
            (#""phone":1"#, "card.phone is not true or false"),
        ]
    )
    func wrongDescription(entry: String, error: String) throws {
        let json = try JSON(#"{"kind":"pkoc",\#(entry)}"#.utf8)
        #expect(throws: Malformed(error)) {
            try VirtualCardKinds([VirtualPKOCKind()]).describe(simulator: nil, card: json)
        }
        let zeros = String(repeating: "0", count: 64)
        #expect(throws: Malformed("card.key is not a private key of P-256")) {
            try CredentialStage.card(#""key":"\#(zeros)""#)
        }
    }

    // MARK: SE V2

    private static func date(_ year: Int) -> @Sendable () -> CVDate {
        { CVDate(year: year, month: 6, day: 1) ?? .earliest }
    }

    @Test("SE V2: the certificate of a known issuer is reported with its extensions", arguments: [nil, 100, 7])
    func certified(partLength: Int?) async throws {
        let stage = try await CredentialStage(PKOCSite(issuers: [try Vectors.issuer()], isValidated: true))
        let client = try await stage.watcher()
        let parts = partLength.map { #","partLength":\#($0)"# } ?? ""
        try await stage.tap(try Vectors.certifiedCard() + parts)
        let message = try #require(await client.next("CREDENTIAL"))
        #expect(message["protocol"] == .string("pkoc-se2"))
        #expect(message["verified"] == .bool(true))
        #expect(message["publicKey"]?.string == (try Vectors.text("cvc", "subject", "public")))
        #expect(message["transaction"]?.string?.count == 64)
        let certificate: JSON = #"""
            {"state":"valid","issuer":"0100BADGED000001","subject":"CARD000000000042","from":"2026-01-01",
            "to":"2036-01-01","extensions":[{"identifier":"2b0601040183fc2f0801",
            "value":"b7a9d7deb4e9bf1d85a086012e15bb0d"}]}
            """#
        #expect(message["certificate"] == certificate)
    }

    @Test(
        "validated mode: every card without a valid certificate is refused, and never read with SE V1",
        arguments: [
            ("unknown", 2026, "unknownIssuer"), ("other", 2026, "wrongCertificateSignature"),
            ("known", 2025, "notYetValid"),
            ("known", 2037, "expired"), ("plain", 2026, "noCertificate"), ("wrong", 2026, "wrongSignature"),
        ]
    )
    func validated(card: String, year: Int, reason: String) async throws {
        let issuer = try Vectors.issuer()
        let point = Hex.decode(try Vectors.text("own", "card", "public")) ?? []
        let otherKey = PKOCIssuer.Key.elliptic(try ECPublicKey(point, on: .secp256r1))
        let issuers: [PKOCIssuer] =
            switch card {
            case "unknown": []
            case "other": [try #require(PKOCIssuer(reference: issuer.reference, key: otherKey))]
            default: [issuer]
            }
        let stage = try await CredentialStage(
            PKOCSite(issuers: issuers, isValidated: true),
            today: Self.date(year)
        )
        let client = try await stage.watcher()
        let wrong = card == "wrong" ? #","signature":"wrong""# : ""
        try await stage.tap(card == "plain" ? "" : try Vectors.certifiedCard() + wrong)
        let message = try #require(await client.next("CREDENTIAL"))
        #expect(message["verified"] == .bool(false))
        #expect(message["reason"]?.string == reason)
        #expect(message["protocol"] == .string("pkoc-se2"))
        #expect(message["publicKey"] == nil && message["numbers"] == nil)
    }

    @Test("without validated mode an expired certificate is reported as expired, without its extensions")
    func expired() async throws {
        let stage = try await CredentialStage(PKOCSite(issuers: [try Vectors.issuer()]), today: Self.date(2040))
        let client = try await stage.watcher()
        try await stage.tap(try Vectors.certifiedCard())
        let message = try #require(await client.next("CREDENTIAL"))
        #expect(message["verified"] == .bool(true))
        #expect(message["certificate"]?["state"] == .string("expired"))
        #expect(message["certificate"]?["extensions"] == nil)
    }

    @Test("validated mode without an issuer is a fault in GET_HEALTH")
    func health() async throws {
        for (isValidated, expected) in [(true, [false]), (false, [])] {
            let stage = try await CredentialStage(PKOCSite(isValidated: isValidated))
            let features = stage.server.server.features.compactMap { $0 as? CredentialFeature }
            let checks = await features.first?.health() ?? []
            #expect(checks.map(\.ok) == expected)
        }
    }

    // MARK: Other kinds of cards

    @Test("eID cards and Keycards are recognised as such, whether clients watch or not", arguments: [false, true])
    func otherKinds(isWatched: Bool) async throws {
        let stage = try await CredentialStage(
            moreCards: [VirtualKeycardKind()],
            moreFeatures: { [WalletFeature($0, StateStore { () throws(Failure) -> Store? in nil })] }
        )
        let client = isWatched ? try await stage.watcher() : try stage.server.connect()
        let readers = try #require(stage.server.readers)
        for kind in ["eid", "keycard", "pkoc"] {
            let description = try readers.describe(simulator: nil, card: try JSON(#"{"kind":"\#(kind)"}"#.utf8))
            _ = try await stage.server.registry.insert(
                description,
                into: try #require(stage.server.registry["Simulator"])
            )
            var found: String?
            while found == nil, let message = await client.next("READER") { found = message["card"]?["kind"]?.string }
            #expect(found == kind)
            if kind != "pkoc" { #expect(!client.hasReceived(#""CREDENTIAL""#)) }
            await stage.remove()
        }
    }
}
