// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

/// IDENTIFY_CARD: what a card that no feature uses says about itself.
@Suite("Which card is this", .timeLimit(.minutes(5)))
struct IdentifyTests {
    /// A card with the application PIV and a number, which a reader reports. It counts what is selected.
    private final class StrangeCard: VirtualCardSoftware {
        let historicalBytes: [UInt8] = [1, 2, 3]
        var selected: [String] = []
        var counters: [JSON.Member] { [.init("selected", .array(selected.map { .string($0) }))] }
        private let hasNumber: Bool

        init(hasNumber: Bool) { self.hasNumber = hasNumber }

        func process(_ command: [UInt8]) -> [UInt8] {
            if command.starts(with: [0xFF, 0xCA]) { return hasNumber ? [1, 2, 3, 4, 0x90, 0] : [0x6E, 0] }
            guard command.starts(with: [0x00, 0xA4, 0x04]), command.count > 5 else { return [0x6D, 0] }
            let aid = Hex.encode(command[5...].prefix(Int(command[4]))).uppercased()
            selected.append(aid)
            return aid == "A000000308000010000100" ? [0x61, 0x00, 0x90, 0] : [0x6A, 0x82]
        }

        func reset() {}
    }

    private static let identify = #"{"cmd":"IDENTIFY_CARD","name":"Desk"}"#

    @Loop private static func server(_ card: VirtualCard) async throws -> (TestServer, TestClient, ScriptedReaders) {
        let backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
        let server = try await TestServer(readers: 0, backends: [backend])
        backend.add(ReaderDescription(name: "Desk"))
        await server.ready(["Desk"])
        let client = try server.connect()
        _ = await client.exchange()
        return (server, client, backend)
    }

    @Test(
        "a card of no known kind says its answer to reset, its number and its applications",
        arguments: [true, false]
    )
    @Loop func unknown(hasNumber: Bool) async throws {
        let card = try VirtualCard(StrangeCard(hasNumber: hasNumber))
        let (server, client, backend) = try await Self.server(card)
        let missing = await client.answer(to: Self.identify)
        #expect(missing?["error"] == .string("there is no card in this reader"))
        backend.insert(into: "Desk", answerToReset: card.answerToReset)
        #expect(await client.next("READER")?["card"] != .null)
        let answer = try #require(await client.ask(Self.identify, "CARD_IDENTITY"))
        #expect(answer["atr"] == .string(Hex.encode(card.answerToReset)))
        #expect(answer["uid"]?.string == (hasNumber ? "01020304" : nil))
        #expect(answer["applications"]?.array?.map { $0["name"] } == [.string("PIV")])
        #expect(answer["fault"] == nil && answer["error"] == nil)
        #expect(!server.isLent("Desk"))
        // Neither payment cards, nor NDEF, nor a mobile document: they wake the wallet of a phone.
        let selected = await card.counters.first { $0.key == "selected" }?.value.array?.compactMap(\.string) ?? []
        for wallet in ["325041592E", "A00000000", "D2760000850101", "A0000002480400"] {
            #expect(!selected.contains { $0.hasPrefix(wallet) }, "\(wallet)")
        }
    }

    @Test("a card that a feature knows is not asked for more")
    @Loop func known() async throws {
        let card = try VirtualCard()
        let (_, client, backend) = try await Self.server(card)
        backend.insert(into: "Desk", answerToReset: card.answerToReset)
        #expect(await client.next("READER")?["card"]?["kind"] == .string("eid"))
        let count = await card.apdus
        let answer = try #require(await client.ask(Self.identify, "CARD_IDENTITY"))
        #expect(answer["applications"] == .array([]) && answer["atr"] == .string(Hex.encode(card.answerToReset)))
        #expect(await card.apdus == count)
    }

    @Test(
        "a card that takes the place of the one that the command meant is not asked",
        arguments: [
            (identify, "CARD_IDENTITY"), (#"{"cmd":"RECORD_CARD","name":"Desk"}"#, "CARD_RECORDING"),
        ]
    )
    @Loop func replaced(command: String, message: String) async throws {
        let (strange, other) = (try VirtualCard(StrangeCard(hasNumber: true)), try VirtualCard())
        let (server, client, backend) = try await Self.server(strange)
        let second = try server.connect()
        backend.insert(into: "Desk", answerToReset: strange.answerToReset)
        #expect(await client.next("READER")?["card"] != .null)
        let reader = try #require(server.registry["Desk"])
        // The command waits for the end of a reading.
        let reading = await server.registry.lendForReading(reader, try #require(reader.insertion))
        await client.send(command)
        _ = await second.exchange()
        backend.onConnect { _ throws(CardError) in ScriptedConnection(to: other) }
        backend.withdraw(from: "Desk")
        backend.insert(into: "Desk", answerToReset: other.answerToReset)
        while let state = await client.next("READER"), state["card"]?["kind"] != .string("eid") {}
        let count = await other.apdus
        await reading?.release(removingVirtualCard: false)
        let answer = try #require(await client.next(message))
        #expect(answer["fault"] == .string("The card has left the reader."))
        #expect(await other.apdus == count)
        #expect(!server.isLent("Desk"))
    }

    @Test("a card that another client uses is not disturbed, and the answer says why")
    @Loop func busy() async throws {
        let card = try VirtualCard(StrangeCard(hasNumber: true))
        let (server, client, backend) = try await Self.server(card)
        backend.insert(into: "Desk", answerToReset: card.answerToReset)
        #expect(await client.next("READER")?["card"] != .null)
        let lease = try await server.registry.lend("Desk", to: ObjectIdentifier(server), called: "phone")
        let answer = try #require(await client.ask(Self.identify, "CARD_IDENTITY"))
        #expect(answer["fault"]?.string?.isEmpty == false && answer["applications"] == .array([]))
        await lease.release(removingVirtualCard: false)
        for name in ["Nothing", ""] {
            let refused = await client.answer(to: #"{"cmd":"IDENTIFY_CARD","name":"\#(name)"}"#)
            #expect(refused?["error"] != nil)
        }
    }
}
