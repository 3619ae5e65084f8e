// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816
import Readers
import ReadersVirtual
import Taps
import TestSupport
import Testing
import Text
import VirtualTaps

/// The reader and the virtual card, which share the messages and the keys with each other, but not their dialogues.
@Suite("A virtual card with Aliro", .timeLimit(.minutes(5)))
struct VirtualCardTests {
    /// A card that knows the reader of the vectors; `entries` are further members of `card`.
    private static func card(_ entries: String = "", knowsReader: Bool = true) throws -> VirtualCard {
        let reader = Hex.encode(try Vector.site().publicKey.compressedPoint)
        let members = [#""kind":"aliro""#, knowsReader ? #""reader":"\#(reader)""# : "", entries]
        let json = try JSON("{\(members.filter { !$0.isEmpty }.joined(separator: ","))}".utf8)
        return try VirtualCardKinds([VirtualAliroKind()]).describe(simulator: nil, card: json).makeCard()
    }

    /// Taps a card on a reader that has read it `bonds` times before.
    private static func tap(
        _ card: VirtualCard,
        bonds: [AliroBond] = [],
        site: AliroSite? = nil
    ) async throws -> AliroReading {
        await card.reset()
        let reader = try #require(try await AliroReader.select(on: VirtualCardChannel(card)))
        return try await reader.read(for: try site ?? Vector.site(), bonds: bonds)
    }

    private static func counter(_ name: String, of card: VirtualCard) async -> JSON? {
        await card.counters.first { $0.key == name }?.value
    }

    @Test("the first tap is the standard phase, the second one the fast phase, with one key", arguments: [nil, 40, 1])
    func twoTaps(partLength: Int?) async throws {
        let card = try Self.card(partLength.map { #""partLength":\#($0)"# } ?? "")
        let first = try #require(try await Self.tap(card).credential)
        #expect(first.phase == .standard)
        let bond = try #require(first.bond)
        let second = try #require(try await Self.tap(card, bonds: [bond]).credential)
        #expect(second.phase == .fast && second.key == first.key && second.transaction != first.transaction)
        #expect(await Self.counter("signatures", of: card) == .number("1"))
        #expect(await Self.counter("cryptograms", of: card) == .number("1"))
        #expect(await Self.counter("status", of: card) == .string("0182"))
    }

    @Test("the bond of another card or of another identifier leads to the standard phase")
    func otherBond() async throws {
        let other = try #require(
            try await Self.tap(try Self.card(#""key":"\#(String(repeating: "11", count: 32))""#)).credential?.bond
        )
        let card = try Self.card()
        let bond = try #require(try await Self.tap(card).credential?.bond)
        #expect(try await Self.tap(card, bonds: [other]).credential?.phase == .standard)
        #expect(try await Self.tap(card, bonds: [other, bond]).credential?.phase == .standard)
        let reader = AliroSite(
            key: try Vector.privateKey(try Vector.all().object("reader").bytes("private")),
            group: [1, 2, 3]
        )
        #expect(try await Self.tap(card, bonds: [bond], site: reader).credential?.phase == .standard)
    }

    @Test("a card without the fast phase is read in the standard phase each time")
    func noFast() async throws {
        let card = try Self.card(#""fast":false"#)
        let bond = try #require(try await Self.tap(card).credential?.bond)
        #expect(try await Self.tap(card, bonds: [bond]).credential?.phase == .standard)
    }

    @Test("a card that does not know the reader refuses it, and shows no key")
    func unknownReader() async throws {
        #expect(try await Self.tap(try Self.card(knowsReader: false)).problem == .refused)
        let other = AliroSite(key: try ECPrivateKey(on: try Curve.secp256r1.group), group: [])
        let card = try Self.card()
        #expect(try await Self.tap(card, site: other).problem == .refused)
        #expect(await Self.counter("signatures", of: card) == .number("0"))
        let zeros = String(repeating: "00", count: 16)
        #expect(try await Self.tap(try Self.card(#""group":"\#(zeros)""#)).problem == .refused)
        let group = Hex.encode(try Vector.site().identifier.prefix(16))
        #expect(try await Self.tap(try Self.card(#""group":"\#(group)""#)).credential != nil)
    }

    @Test("a wrong and a repeated answer to AUTH1 are reported as wrong")
    func wrongAnswers() async throws {
        #expect(try await Self.tap(try Self.card(#""signature":"wrong""#)).problem == .wrongSignature)
        let card = try Self.card(#""signature":"replayed""#)
        #expect(try await Self.tap(card).credential != nil)
        #expect(try await Self.tap(card).problem == .wrongEncryption)
        #expect(await Self.counter("status", of: card) == .string("0182"))
    }

    @Test("after a fault at any command no wrong key is reported, and the next tap is read")
    func faults() async throws {
        let key = try #require(try await Self.tap(try Self.card()).credential?.key)
        let site = try Vector.site()
        let faults = [
            "remove", "removeAfter", "mute", "muteAfter", "truncate", "garbage", "flipBit", "replay", "sw:6F00",
        ]
        for index in 0...3 {
            for fault in faults {
                let card = try Self.card(#""faults":[{"afterApdu":\#(index),"do":"\#(fault)"}]"#)
                let reader = try? await AliroReader.select(on: VirtualCardChannel(card))
                if let credential = (try? await reader?.read(for: site))?.credential {
                    // SELECT is sent once more, and the answer to EXCHANGE decides nothing.
                    #expect([0, 3].contains(index) && credential.key == key, "\(fault) at \(index)")
                }
                #expect(try await Self.tap(card).credential?.key == key, "behind \(fault) at \(index)")
            }
        }
    }

    @Test(
        "the card refuses unexpected commands",
        arguments: [
            (["80800000"], "6985"), (["00A4040009A000000909ACCE5502"], "6A82"), (["select", "80810000"], "6985"),
            (["select", "80C90000"], "6985"), (["select", "8080000001 41"], "6700"), (["select", "80800100"], "6B00"),
            (["select", "80D10000"], "6D00"), (["select", "00800000"], "6E00"), (["select", "803C0000"], "9000"),
            (["select", "803C0000", "80810000"], "6985"), (["00"], "6700"),
            (["00A4040008A000000898000001"], "6A82"),
        ]
    )
    func refusals(commands: [String], status: String) async throws {
        let card = try Self.card()
        var last: VirtualCard.Reply?
        for command in commands {
            last = await card.exchange(command == "select" ? AliroCommand.select.bytes : hex(command))
        }
        #expect(last == .answer(hex(status)))
    }

    @Test(
        "a wrong description is refused by the name of its entry",
        arguments: [
            (#""key":"00""#, "card.key is not 32 bytes in hexadecimal"),
            (#""reader":"00""#, "card.reader is not 33 bytes in hexadecimal"),
            (#""group":"00""#, "card.group is not 16 bytes in hexadecimal"),
            (#""versions":"01""#, "card.versions is not one to eight versions of two bytes"),
            (#""partLength":0"#, "card.partLength is not a whole number from 1 to 256"),
            (#""signature":"good""#, "card.signature is not right, wrong or replayed"),
            (#""fast":1"#, "card.fast is not true or false"), (#""pkoc":1"#, "card.pkoc is not true or false"),
        ]
    )
    func wrongDescription(entry: String, error: String) throws {
        #expect(throws: Malformed(error)) { try Self.card(entry, knowsReader: false) }
    }

    @Test("an invalid key is refused")
    func wrongKeys() throws {
        let zeros = String(repeating: "0", count: 64)
        #expect(throws: Malformed("card.key is not a private key of P-256")) {
            try Self.card(#""key":"\#(zeros)""#)
        }
        #expect(throws: Malformed("card.reader is not a compressed public key of P-256")) {
            try Self.card(#""reader":"00\#(zeros)""#, knowsReader: false)
        }
        #expect(throws: Malformed("simulator is only for eID cards")) {
            try VirtualAliroKind().describe(simulator: .object([]), card: nil)
        }
    }
}
