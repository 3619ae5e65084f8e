// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Host
import ReadersVirtual
import Server
import TestSupport
import Testing
import Text

@testable import Cards
@testable import CredentialFeature

/// CHALLENGE_CARD: a door panel chooses what the card of a tap signs.
@Suite("Cards that a door panel asks", .timeLimit(.minutes(5)))
@Loop struct ChallengeTests {
    nonisolated private static let transaction = "000102030405060708090a0b0c0d0e0f"

    private static func ask(_ number: Int, _ transaction: String = transaction) -> String {
        #"{"cmd":"CHALLENGE_CARD","number":\#(number),"transaction":"\#(transaction)"}"#
    }

    /// A phone on a reader that the test can hold, where panels may ask, and a client that was told of it.
    private static func tapped(
        _ entries: String = #""phone":true"#,
        kind: String = "pkoc",
        readers: Set<String> = [HeldReader.name],
        time: Int64 = 3_600_000
    ) async throws -> (stage: CredentialStage, reader: HeldReader, card: VirtualCard, client: TestClient, tap: JSON) {
        let card = try CredentialStage.card(entries, kind: kind)
        let reader = HeldReader(card)
        let stage = try await CredentialStage(held: reader, panelReaders: readers, questionTime: time)
        let client = try await stage.watcher()
        reader.insert()
        let tap = try #require(await client.next("CREDENTIAL"))
        return (stage, reader, card, client, tap)
    }

    @Test("the card of the tap signs what the panel has chosen, after badged has verified its key")
    func signs() async throws {
        let (stage, reader, card, client, tap) = try await Self.tapped()
        defer { withExtendedLifetime((stage, reader)) {} }
        #expect(tap["verified"] == .bool(true))
        let answer = try #require(await client.ask(Self.ask(1), "CHALLENGED"))
        #expect(answer["error"]?.string == nil)
        #expect(answer["number"] == .number("1") && answer["publicKey"] == tap["publicKey"])
        let key = try ECPublicKey(try answer.bytes("publicKey"), on: .secp256r1)
        let signature = try answer.bytes("signature")
        #expect(try ECDSA.verify(signature, of: hex(Self.transaction), with: key, digest: .sha256))
        // What clients were told proves another transaction.
        #expect(tap["transaction"] != .string(Self.transaction))
        #expect(try await stage.signatures(of: card) == 2)
        #expect(stage.server.logged.contains { $0.contains("a door panel chooses what the card in 'Desk' signs") })
    }

    @Test("a card is asked once, also by another client, and by a client that comes later")
    func once() async throws {
        let (stage, reader, card, client, _) = try await Self.tapped()
        defer { withExtendedLifetime((stage, reader)) {} }
        #expect(await client.ask(Self.ask(1), "CHALLENGED")?["error"] == nil)
        #expect(await client.ask(Self.ask(1), "CHALLENGED")?["error"]?.string?.contains("asked before") == true)
        // The card is read again for this client, under the same number.
        let other = try await stage.watcher()
        #expect(await other.next("CREDENTIAL")?["number"] == .number("1"))
        #expect(await other.ask(Self.ask(1), "CHALLENGED")?["error"]?.string?.contains("asked before") == true)
        #expect(try await stage.signatures(of: card) == 3)
    }

    @Test("two questions at the same time: one gets the signature")
    func twoLines() async throws {
        let (stage, reader, card, client, _) = try await Self.tapped()
        defer { withExtendedLifetime((stage, reader)) {} }
        let other = try stage.server.connect()
        reader.holdCommand(0)
        await client.send(Self.ask(1))
        await reader.arrival()
        await client.send(Self.ask(1))
        // Other commands are answered meanwhile.
        #expect(await client.next("CHALLENGED")?["error"] != nil)
        #expect(await client.ask(#"{"cmd":"GET_INFO"}"#, "INFO") != nil)
        // Who watches no taps may not ask, either.
        #expect(await other.ask(Self.ask(1), "CHALLENGED")?["error"] != nil)
        reader.openGate()
        #expect(await client.next("CHALLENGED")?["signature"] != nil)
        #expect(try await stage.signatures(of: card) == 2)
    }

    @Test(
        "no panel may ask at other readers, about other taps, about other cards, or with the setting left out",
        arguments: [
            ("pkoc", [], 1), ("pkoc", ["Hall"], 1), ("pkoc", [HeldReader.name], 2), ("tag", [HeldReader.name], 1),
            ("wrong", [HeldReader.name], 1), ("certificate", [HeldReader.name], 1),
        ] as [(String, Set<String>, Int)]
    )
    func refused(_ kind: String, _ readers: Set<String>, _ number: Int) async throws {
        var entries = ""
        if kind == "wrong" { entries = #""signature":"wrong""# }
        if kind == "certificate" { entries = try Vectors.certifiedCard() }
        let (stage, reader, card, client, _) = try await Self.tapped(
            entries,
            kind: kind == "tag" ? "tag" : "pkoc",
            readers: readers
        )
        defer { withExtendedLifetime((stage, reader)) {} }
        let before = await JSON.object(card.counters)
        let error = await client.ask(Self.ask(number), "CHALLENGED")?["error"]?.string
        #expect(error?.contains("no door panel may ask") == true)
        await stage.server.released(HeldReader.name)
        #expect(await JSON.object(card.counters) == before)
    }

    @Test(
        "only transactions of SE V1 are taken: other lengths mean something else to cards",
        arguments: [
            "", "00", "000102030405060708090a0b0c0d0e", "000102030405060708090a0b0c0d0e0f10",
            "x00102030405060708090a0b0c0d0e0f",
        ] + [32, 33, 65].map { String(repeating: "07", count: $0) }
    )
    func lengths(_ transaction: String) async throws {
        let (stage, reader, card, client, _) = try await Self.tapped()
        defer { withExtendedLifetime((stage, reader)) {} }
        let error = await client.ask(Self.ask(1, transaction), "CHALLENGED")?["error"]?.string
        #expect(error?.contains("16 bytes") == true)
        #expect(try await stage.signatures(of: card) == 1)
        // The card may still be asked.
        #expect(await client.ask(Self.ask(1), "CHALLENGED")?["signature"] != nil)
    }

    @Test("both permissions are necessary", arguments: [Permissions.all.subtracting(.report), .report])
    func permissions(_ permissions: Permissions) async throws {
        let (stage, reader, _, client, _) = try await Self.tapped()
        defer { withExtendedLifetime((stage, reader)) {} }
        let other = try stage.server.connect(uid: 1001, permissions)
        #expect(await other.ask(Self.ask(1), "ACCESS_DENIED") != nil)
        #expect(await client.ask(Self.ask(1), "CHALLENGED")?["signature"] != nil)
    }

    @Test("a card that has left is not asked")
    func left() async throws {
        let (stage, reader, card, client, _) = try await Self.tapped()
        defer { withExtendedLifetime((stage, reader)) {} }
        reader.backend.remove(HeldReader.name)
        await stage.wait { $0.insertion == nil }
        #expect(await client.ask(Self.ask(1), "CHALLENGED")?["error"] != nil)
        #expect(try await stage.signatures(of: card) == 1)
    }

    @Test("a card that leaves or falls silent when it is asked has not signed", arguments: [0, 1], ["mute", "remove"])
    func leaves(command: Int, fault: String) async throws {
        let whole = try await Self.tapped()
        await whole.stage.server.released(HeldReader.name)
        let count = try #require(JSON.object(await whole.card.counters)["apdus"]?.int)
        defer { withExtendedLifetime(whole) {} }
        let faults = #""phone":true,"faults":[{"afterApdu":\#(count + command),"do":"\#(fault)"}]"#
        let (stage, reader, card, client, _) = try await Self.tapped(faults)
        defer { withExtendedLifetime((stage, reader)) {} }
        let answer = try #require(await client.ask(Self.ask(1), "CHALLENGED"))
        #expect(answer["error"] != nil && answer["signature"] == nil)
        await stage.server.released(HeldReader.name)
        #expect(try await stage.signatures(of: card) == 1)
    }

    @Test("a card that was read too long ago is not asked, and one that does not answer in time has not signed")
    func late() async throws {
        let (stage, reader, card, client, _) = try await Self.tapped(time: 0)
        defer { withExtendedLifetime((stage, reader)) {} }
        #expect(await client.ask(Self.ask(1), "CHALLENGED")?["error"]?.string?.contains("too long ago") == true)
        #expect(try await stage.signatures(of: card) == 1)
        let (second, silent, held, other, _) = try await Self.tapped(time: 300)
        defer { withExtendedLifetime((second, silent)) {} }
        // On a slow machine the time is over before the question, which ends in the same way.
        silent.hold()
        #expect(await other.ask(Self.ask(1), "CHALLENGED")?["error"] != nil)
        #expect(try await second.signatures(of: held) == 1)
    }

    @Test("when the client stops, the card gets no further command")
    func stops() async throws {
        let (stage, reader, card, client, _) = try await Self.tapped()
        defer { withExtendedLifetime((stage, reader)) {} }
        reader.holdCommand(0)
        await client.send(Self.ask(1))
        await reader.arrival()
        #expect(await client.ask(#"{"cmd":"STOP_CREDENTIALS"}"#, "CREDENTIALS") != nil)
        reader.openGate()
        #expect(await client.next("CHALLENGED")?["error"] != nil)
        await stage.server.released(HeldReader.name)
        #expect(try await stage.signatures(of: card) == 1)
    }
}
