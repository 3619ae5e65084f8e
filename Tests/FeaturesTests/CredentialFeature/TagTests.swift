// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Concurrency
import Host
import ISO7816
import NFCTestSupport
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text

@testable import Cards
@testable import CredentialFeature
@testable import badgectl

@Suite("Tags on readers", .timeLimit(.minutes(5)))
@Loop struct TagTests {
    private static let start = #"{"cmd":"START_CREDENTIALS"}"#
    private static let startNDEF = #"{"cmd":"START_CREDENTIALS","ndef":true}"#
    private static let url = #""ndef":"d1010c55046578616d706c652e6f7267""#

    @Test("a tag is told with its number and without a proof, and READER has only its kind")
    func number() async throws {
        let stage = try await CredentialStage()
        let client = try await stage.watcher()
        let other = try stage.server.connect()
        try await stage.tap(Self.url, kind: "tag")
        #expect(await client.next("READER")?["card"] == #"{"kind":"tag"}"#)
        let message = try #require(await client.next("CREDENTIAL")).withoutPlace
        let expected: JSON = """
            {"msg":"CREDENTIAL","reader":"Simulator","protocol":"tag","verified":false,"reason":"noProof",\
            "tag":{"uid":"04a1b2c3d4e5f6","type":"mifareUltralight","random":false}}
            """
        #expect(message == expected)
        _ = await other.exchange()
        #expect(!other.hasReceived("04a1b2"))
        // The number is not in the log.
        let line = try #require(stage.server.loggedFields.last { $0.text.hasPrefix("tag in") })
        #expect(line.fields.reader == "Simulator" && line.fields.uid != nil)
        #expect(!stage.server.logged.contains { $0.contains("04a1b2") })
    }

    @Test(
        "each kind of tag has its type, and a random number is marked",
        arguments: [
            ("mifareClassic1K", "04a1b2c3", false), ("mifareClassic4K", "04a1b2c3", false),
            ("mifareUltralight", "04a1b2c3d4e5f6", false), ("mifareDESFire", "04a1b2c3d4e5f6", false),
            ("ntag", "04a1b2c3d4e5f6", false), ("iso14443-4", "08123456", true), ("iso14443b", "01020304", false),
        ]
    )
    func types(type: String, uid: String, isRandom: Bool) async throws {
        let stage = try await CredentialStage()
        let client = try await stage.watcher()
        try await stage.tap(#""type":"\#(type)","uid":"\#(uid)""#, kind: "tag")
        let tag = try #require(await client.next("CREDENTIAL")?["tag"])
        #expect(tag["type"] == .string(type) && tag["uid"] == .string(uid) && tag["random"] == .bool(isRandom))
    }

    @Test("only a client that asks for it gets the message of a tag, also if another one watches")
    func message() async throws {
        let stage = try await CredentialStage()
        let plain = try await stage.watcher()
        let client = try stage.server.connect()
        _ = await client.ask(Self.startNDEF, "CREDENTIALS")
        try await stage.tap(Self.url, kind: "tag")
        let told = try #require(await client.next("CREDENTIAL"))
        #expect(told["tag"]?["ndef"] == #"[{"type":"uri","uri":"https://example.org"}]"#)
        let same = try #require(await plain.next("CREDENTIAL"))
        #expect(same["number"] == told["number"] && same["tag"]?["uid"] == told["tag"]?["uid"])
        #expect(same["tag"]?["ndef"] == nil)
        // The wish is that of the last START_CREDENTIALS.
        #expect(await client.ask(Self.start, "CREDENTIAL")?["tag"]?["ndef"] == nil)
        #expect(
            await client.ask(#"{"cmd":"START_CREDENTIALS","ndef":1}"#, "CREDENTIALS", "INVALID", "BAD_STATE")?["error"]
                != nil
        )
    }

    @Test("a client that joins a reading without the message gets a reading of its own")
    func joined() async throws {
        // The reader makes no answer to reset of a storage card.
        let card = try CredentialStage.card(#""type":"ntag",\#(Self.url)"#, kind: "tag")
        let reader = HeldReader(card)
        let stage = try await CredentialStage(held: reader)
        reader.insert()
        await stage.wait { $0.showsCard }
        // GET DATA.
        reader.holdCommand(0)
        let plain = try await stage.watcher()
        await reader.arrival()
        let client = try stage.server.connect()
        _ = await client.ask(Self.startNDEF, "CREDENTIALS")
        reader.openGate()
        let told = try #require(await client.next("CREDENTIAL"))
        #expect(told["tag"]?["ndef"] == #"[{"type":"uri","uri":"https://example.org"}]"#)
        #expect(await plain.next("CREDENTIAL")?["tag"]?["ndef"] == nil)
    }

    @Test(
        "a tag that leaves while its message is read is told with its number",
        arguments: ["remove", "mute", "sw:6A82", "garbage"]
    )
    func lost(fault: String) async throws {
        let stage = try await CredentialStage()
        let client = try stage.server.connect()
        _ = await client.ask(Self.startNDEF, "CREDENTIALS")
        // Recognition and the reading ask for the number; the third command reads pages.
        try await stage.tap(Self.url + #","faults":[{"afterApdu":2,"do":"\#(fault)"}]"#, kind: "tag")
        let tag = try #require(await client.next("CREDENTIAL")?["tag"])
        #expect(tag["uid"] == .string("04a1b2c3d4e5f6") && tag["ndef"] == .null)
    }

    @Test("a phone that offers a handover is reported as such, without its number and its message")
    func handover() async throws {
        let stage = try await CredentialStage()
        let client = try stage.server.connect()
        _ = await client.ask(Self.startNDEF, "CREDENTIALS")
        try await stage.tap(#""uid":"08123456","type":"iso14443-4","ndef":"d10201487315""#, kind: "tag")
        let told = try #require(await client.next("CREDENTIAL"))
        #expect(
            (told["protocol"], told["verified"], told["reason"]) == (
                .string("handover"), .bool(false), .string("handover")
            )
        )
        #expect(told["tag"] == nil)
    }

    @Test("a tag is read through an NFC board", arguments: [0x00, 0x08] as [UInt8])
    func board(selectAnswer: UInt8) async throws {
        let stage = try await CredentialStage(on: try EmulatedPN532())
        let client = try stage.server.connect()
        _ = await client.ask(Self.startNDEF, "CREDENTIALS")
        var card = PICC(identifier: hex("04a1b2c3d4e5f6"), application: PICC.echo)
        card.selectAnswer = selectAnswer
        card.memory =
            hex("04a1b200c3d4e5f600000000e1100300") + hex("0310d1010c55046578616d706c652e6f7267fe0000000000")
        stage.board?.field.insert(card)
        let tag = try #require(await client.next("CREDENTIAL")?["tag"])
        #expect(tag["uid"] == .string("04a1b2c3d4e5f6"))
        #expect(tag["type"] == .string(selectAnswer == 0 ? "mifareUltralight" : "mifareClassic1K"))
        #expect(tag["ndef"] == (selectAnswer == 0 ? #"[{"type":"uri","uri":"https://example.org"}]"# : .null))
    }

    @Test("an ID card on a board keeps its kind, and a card of no kind is a tag", arguments: [PICC.Technology.a, .b])
    func unknownCard(technology: PICC.Technology) async throws {
        let stage = try await CredentialStage(on: try EmulatedPN532())
        let client = try await stage.watcher()
        stage.board?.field.insert(PICC(technology, application: { _ in .answer([0x6A, 0x82]) }))
        let tag = try #require(await client.next("CREDENTIAL")?["tag"])
        #expect(tag == #"{"uid":"08123456","type":"iso14443-4","random":true}"#)
    }

    // MARK: Clients

    @Test("the client library has the tag, and badgectl shows it without calling it a credential")
    func client() throws {
        let line = #"""
            {"msg":"CREDENTIAL","number":1,"time":5,"reader":"Desk","protocol":"tag","verified":false,\#
            "reason":"noProof","tag":{"uid":"08123456","type":"ntag","random":true,"ndef":[\#
            {"type":"uri","uri":"https://example.org"},{"type":"text","text":"Hi","language":"en"},\#
            {"type":"other","name":"text/vcard"}]}}
            """#
        let event = try Array(line.utf8).withUnsafeBytes { try Event($0) }
        let credential = try #require(event.message as? Credential)
        #expect(credential.key == nil && credential.reason == "noProof")
        let tag = try #require(credential.tag)
        #expect(tag.uid == [8, 0x12, 0x34, 0x56] && tag.type == "ntag" && tag.isRandom)
        #expect(tag.records == [.uri("https://example.org"), .text("Hi", language: "en"), .other("text/vcard")])
        #expect(
            CredentialsCommand.line(credential)
                == #"Desk: tag 08123456 (another number at each tap), ntag; proves nothing; https://example.org; "Hi"; a record text/vcard"#
        )
    }

    @Test(
        "a card file of a tag that cannot be is refused",
        arguments: [
            (#""uid":"0102""#, "card.uid is not 4, 7, 8 or 10 bytes"), (#""type":"x""#, "card.type is not one of"),
            (#""type":"felica","ndef":"d00000""#, "card.ndef is only for"), (#""ndef":"0""#, "card.ndef has an odd"),
            (#""ndef":"\#(String(repeating: "00", count: 2036))""#, "card.ndef is longer than 2035 bytes"),
        ]
    )
    func description(entries: String, error: String) {
        let found = #expect(throws: Malformed.self) { try CredentialStage.card(entries, kind: "tag") }
        #expect(found?.text.hasPrefix(error) == true, "\(found?.text ?? "")")
    }
}
