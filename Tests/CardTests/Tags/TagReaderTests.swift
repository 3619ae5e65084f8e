// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import ReadersVirtual
import Taps
import TestSupport
import Testing
import Text
import VirtualTaps

@Suite("Tags that are known by their number", .timeLimit(.minutes(5)))
struct TagReaderTests {
    private typealias Step = (command: [UInt8]?, answer: [UInt8])

    private static let storage = hex("3b8f8001804f0ca0000003060300030000000068")

    /// The answers to reset are those that manuals of readers print: Identiv uTrust 4701F (Ultralight, 4K), Gemalto
    /// Prox-DU (1K, 4K), ACS ACR1252U (FeliCa), NXP's DESFire EV1 in any reader.
    @Test(
        "the type follows from the answer to reset of a PC/SC reader",
        arguments: [
            ("3b8f8001804f0ca000000306030001000000006a", .mifareClassic1K),
            ("3b8f8001804f0ca0000003060300020000000069", .mifareClassic4K),
            ("3b8f8001804f0ca0000003060300030000000068", .mifareUltralight),
            ("3b8f8001804f0ca000000306030026000000004d", .mifareMini),
            ("3b8f8001804f0ca00000030611003b0000000042", .felica),
            ("3b8180018080", .iso14443Layer4),
            ("3b888001000000003381810030", nil), ("3b8f8001804f0ca000000306030001000000006b", nil),
            ("3b8f8001804f0ca0000003060300010000000000", nil), ("3bf81300008131fe15597562696b657934d4", nil),
            ("", nil), ("3b", nil), ("3b8f8001", nil),
        ] as [(String, TagType?)]
    )
    func types(answerToReset: String, type: TagType?) {
        #expect(TagType(answerToReset: hex(answerToReset)) == type)
    }

    @Test(
        "the answer to reset that the driver of NFC boards makes is that of PC/SC readers",
        arguments: [
            (0x00, .mifareUltralight), (0x08, .mifareClassic1K), (0x18, .mifareClassic4K), (0x09, .mifareMini),
            (0x10, .mifarePlus), (0x01, .iso14443A), (nil, .iso14443B),
        ] as [(UInt8?, TagType)]
    )
    func ownAnswers(selectAnswer: UInt8?, type: TagType) {
        #expect(TagType(answerToReset: TagType.storageAnswerToReset(selectAnswer: selectAnswer)) == type)
        #expect(TagType.storageAnswerToReset(selectAnswer: 0x00) == Self.storage)
    }

    @Test("a number has the length of one, and a reader that tells none has no tag")
    func numbers() async throws {
        for count in 0...12 {
            let card = ScriptedCard([(hex("ffca000000"), [UInt8](repeating: 7, count: count) + [0x90, 0x00])])
            let reader = try await TagReader.identify(on: card, answerToReset: Self.storage)
            #expect((reader == nil) == ![4, 7, 8, 10].contains(count), "\(count)")
        }
        // A refusal may be disturbed, so the reader is asked once more.
        let refusing = ScriptedCard([(hex("ffca000000"), hex("6a81")), (hex("ffca000000"), hex("6a81"))])
        #expect(try await TagReader.identify(on: refusing, answerToReset: Self.storage) == nil)
        // A card with contacts gets no command.
        #expect(try await TagReader.identify(on: ScriptedCard([]), answerToReset: hex("3b00")) == nil)
    }

    @Test("a UID of 4 bytes that begins with 08 is a random one")
    func random() {
        #expect(Taps.Tag(uid: [8, 1, 2, 3], type: .iso14443Layer4).isRandom)
        #expect(!Taps.Tag(uid: [8, 1, 2, 3, 4, 5, 6], type: .iso14443Layer4).isRandom)
        #expect(!Taps.Tag(uid: [4, 1, 2, 3], type: .iso14443A).isRandom)
    }

    // MARK: Messages

    private static let url = "d1010c55046578616d706c652e6f7267"

    private static func read(_ entries: String) async throws -> (Taps.Tag, NDEFMessage?) {
        let card = try VirtualTagKind().describe(simulator: nil, card: try JSON("{\(entries)}".utf8)).makeCard()
        let link = ScriptedConnection(to: card)
        let reader = try #require(try await TagReader.identify(on: link, answerToReset: card.answerToReset))
        return (try await reader.named(), try await reader.message())
    }

    @Test(
        "the message of a tag is read through NFC Forum types 2 and 4",
        arguments: ["mifareUltralight", "mifareDESFire", "ntag", "iso14443-4"]
    )
    func messages(type: String) async throws {
        let (tag, message) = try await Self.read(#""type":"\#(type)","ndef":"\#(Self.url)""#)
        #expect(tag.type.rawValue == type && tag.uid == hex("04a1b2c3d4e5f6"))
        #expect(message?.records == [.uri("https://example.org")])
        // Longer than one READ, one READ BINARY, and the short form of a length.
        let long = String(repeating: "61", count: 900)
        let (_, text) = try await Self.read(#""type":"\#(type)","ndef":"c101000003875402656e\#(long)""#)
        #expect(text?.records == [.text(String(repeating: "a", count: 900), language: "en")])
        let (_, none) = try await Self.read(#""type":"\#(type)","ndef":"""#)
        #expect(none?.records == [])
    }

    @Test(
        "a tag without a message, or with a malformed one, has a number and no message",
        arguments: [
            #""type":"mifareUltralight""#, #""type":"ntag""#, #""type":"mifareClassic1K""#,
            #""type":"mifareUltralight","ndef":"d101""#, #""type":"mifareDESFire","ndef":"d101""#,
        ]
    )
    func unreadable(entries: String) async throws {
        let (tag, message) = try await Self.read(entries)
        #expect(tag.uid.count == 7 && message == nil)
    }

    @Test(
        "the data area of type 2 may have other objects before the message",
        arguments: [
            ("0103a00c34" + "0303d00000" + "fe", .message([0xD0, 0x00, 0x00])), ("0000fe0303d00000", .none),
            ("", .incomplete),
            ("03", .incomplete), ("0304d000", .incomplete), ("03ff0100", .incomplete), ("03ff0010", .malformed),
            ("03ffffff", .malformed), ("fd02aabb0300", .message([])),
        ] as [(String, Type2Memory.Search)]
    )
    func memory(bytes: String, result: Type2Memory.Search) {
        #expect(Type2Memory.find(in: hex(bytes)) == result)
    }

    @Test(
        "a tag of type 2 that states more than it has ends the reading",
        arguments: ["e110ff000303d00000", "e110ff0003ff0fff", "e1101200fd", "e1401200", "00000000", "e110000003"]
    )
    func hostileMemory(bytes: String) async throws {
        let memory = Array((hex(bytes) + [UInt8](repeating: 0, count: 16)).prefix(16))
        let first: [Step] = [
            (hex("ffca000000"), [4, 1, 2, 3, 4, 5, 6, 0x90, 0x00]), (hex("ffb0000310"), memory + [0x90, 0x00]),
        ]
        let zeros: Step = (nil, [UInt8](repeating: 0, count: 16) + [0x90, 0x00])
        let more = [Step](repeating: zeros, count: 200)
        let reader = try #require(
            try await TagReader.identify(on: ScriptedCard(first + more), answerToReset: Self.storage)
        )
        let message = try await reader.message()
        #expect(message == (bytes.hasPrefix("e110ff000303d0") ? try NDEFMessage(hex("d00000")) : nil))
    }
}
