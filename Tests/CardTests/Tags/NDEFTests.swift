// SPDX-License-Identifier: GPL-3.0-or-later
import Taps
import TestSupport
import Testing
import Text

@Suite("NDEF messages", .timeLimit(.minutes(5)))
struct NDEFTests {
    private static func text(_ record: NDEFRecord) -> JSON {
        let members: [(String, String)] =
            switch record {
            case .text(let text, let language): [("type", "text"), ("text", text), ("language", language)]
            case .uri(let uri): [("type", "uri"), ("uri", uri)]
            case .other(let name): [("type", "other"), ("name", name)]
            }
        return .object(members.map { JSON.Member($0, .string($1)) })
    }

    @Test("messages have the records that ndeflib reads, and what it refuses is refused")
    func foreign() throws {
        let rows = try #require(try vectorFile("ndef.json")["rows"]?.array)
        #expect(rows.count > 400)
        for row in rows {
            let message = try? NDEFMessage(try row.bytes("message"))
            let name = row["message"]?.string ?? ""
            // ndeflib refuses the reserved codes of a URI, which count as none.
            let bytes = try row.bytes("message")
            let isReserved = zip(bytes, bytes.dropFirst()).contains { $0 == 0x55 && $1 > 0x23 }
            if row["error"]?.bool == true, message != nil, isReserved { continue }
            if row["error"]?.bool == true {
                #expect(message == nil, "\(name)")
            } else {
                #expect(message.map { JSON.array($0.records.map(Self.text)) } == row["records"], "\(name)")
            }
        }
    }

    @Test("a reserved code of a URI counts as none, and the other records stay", arguments: 0x24...0xFF)
    func reservedCodes(code: Int) throws {
        let uri = hex("51010555") + [UInt8(code)] + Array("x:yz".utf8)
        let message = try NDEFMessage(hex("9101065402656e6f6e65") + uri)
        #expect(message.records == [.text("one", language: "en"), .uri("x:yz")])
    }

    @Test(
        "a handover is recognised: static, negotiated, and with carriers; a tag with words of it is none",
        arguments: [
            ("d10201" + "4873" + "15", true), ("9102014873" + "15" + "520300" + "612f62", true),
            ("d10201" + "4872" + "15", true), ("d10201" + "4869" + "10", true), ("d10201" + "486d" + "15", true),
            ("d10218" + "5470" + "1013" + "75726e3a6e66633a736e3a68616e646f766572" + "000f3f", true),
            ("d10215" + "5470" + "1010" + "75726e3a6e66633a736e3a70726f6f66" + "000f3f", false),
            ("d101055402656e4873", false), ("d20201" + "4873" + "15", false), ("", false),
        ]
    )
    func handover(_ message: String, isHandover: Bool) throws {
        #expect(try NDEFMessage(hex(message)).isHandover == isHandover)
    }

    @Test("the chunks of a record are one record")
    func chunks() throws {
        // The text record "en", "Hello" in three chunks.
        let message = try NDEFMessage(hex("b101045402656e48" + "360002656c" + "5600026c6f"))
        #expect(message.records == [.text("Hello", language: "en")])
    }

    private static let wrongChunk = "a chunk begins or ends where none can"

    @Test(
        "a chunk without its start or its end, and too many records, are refused",
        arguments: [
            ("f101035402656e", wrongChunk), ("b101035402656e560000" + "00", "bytes follow the last record"),
            ("d60000", wrongChunk), ("b101035402656e510000", wrongChunk), ("b101035402656e57000141", wrongChunk),
        ]
    )
    func malformed(bytes: String, error: String) {
        #expect(throws: Malformed(error)) { try NDEFMessage(hex(bytes)) }
    }

    @Test("a message of many records or bytes is refused before it costs much")
    func bounds() {
        let many = hex("900000") + (0..<1000).flatMap { _ in hex("100000") } + hex("500000")
        #expect(throws: Never.self) { try NDEFMessage(many) }
        let other = hex("9101014141") + (0..<200).flatMap { _ in hex("1101014141") } + hex("5101014141")
        #expect(throws: Malformed("the message is too long")) { try NDEFMessage(other) }
        #expect(throws: Malformed("the message is too long")) {
            try NDEFMessage([UInt8](repeating: 0, count: NDEFMessage.maximumBytes + 1))
        }
        #expect((try? NDEFMessage([]))?.records.isEmpty == true)
    }
}
