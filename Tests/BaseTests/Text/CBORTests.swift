// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@Suite struct CBORTests {
    /// RFC 8949, appendix A, with the words of its diagnostic notation that badged reads.
    @Test(
        "the examples of RFC 8949 are read",
        arguments: [
            ("00", .unsigned, "0"), ("17", .unsigned, "23"), ("1818", .unsigned, "24"), ("1903e8", .unsigned, "1000"),
            ("1a000f4240", .unsigned, "1000000"), ("1b000000e8d4a51000", .unsigned, "1000000000000"),
            ("20", .negative, "-1"), ("3903e7", .negative, "-1000"), ("f90000", .float, "0.0"),
            ("f93c00", .float, "1.0"), ("fb3ff199999999999a", .float, "1.1"), ("f97bff", .float, "65504.0"),
            ("fa47c35000", .float, "100000.0"), ("f9c400", .float, "-4.0"), ("f97c00", .float, "inf"),
            ("f4", .bool, "false"), ("f5", .bool, "true"), ("f6", .null, "null"), ("f7", .simple, "?"),
            ("f0", .simple, "?"), ("f8ff", .simple, "?"), ("4401020304", .bytes, "01020304"), ("60", .text, ""),
            ("62c3bc", .text, "ü"), ("64f0908591", .text, "𐅑"), ("5f42010243030405ff", .bytes, "0102030405"),
            ("7f657374726561646d696e67ff", .text, "streaming"),
            ("c074323031332d30332d32315432303a30343a30305a", .tag, "0(2013-03-21T20:04:00Z)"),
            ("d74401020304", .tag, "23(01020304)"), ("80", .array, "[]"), ("83010203", .array, "[1,2,3]"),
            ("8301820203820405", .array, "[1,[2,3],[4,5]]"), ("9f018202039f0405ffff", .array, "[1,[2,3],[4,5]]"),
            ("a0", .map, "{}"), ("a201020304", .map, "{1:2,3:4}"), ("a26161016162820203", .map, "{a:1,b:[2,3]}"),
            ("bf6346756ef563416d7421ff", .map, "{Fun:true,Amt:-2}"),
        ] as [(String, CBOR.Kind, String)]
    )
    func examples(hex: String, kind: CBOR.Kind, text: String) throws {
        let bytes = try #require(Hex.decode(hex))
        let item = try CBOR(bytes)
        #expect(item.kind == kind)
        #expect(item.words == text)
        #expect(item.encoded == bytes)
    }

    @Test(
        "bytes that are no CBOR, or more than one item, are refused",
        arguments: [
            ("", "truncated"), ("18", "truncated"), ("1b00", "truncated"), ("43", "truncated"), ("430102", "truncated"),
            ("8201", "truncated"), ("a101", "truncated"), ("9f01", "truncated"), ("d8", "truncated"),
            ("c0", "truncated"),
            ("5bffffffffffffffff", "truncated"), ("9bffffffffffffffff00", "truncated"),
            ("bbffffffffffffffff00", "truncated"), ("0000", "bytes follow"), ("ff", "break"), ("81ff", "break"),
            ("1c", "reserved"), ("3f", "break"), ("df", "break"), ("f81f", "simple"), ("62c3c3", "UTF-8"),
            ("61ff", "UTF-8"), ("63eda080", "UTF-8"), ("5f6161ff", "no string"), ("5f5fffff", "no string"),
            ("7f4161ff", "no string"), ("a201020103", "twice"), ("a2010218010a", "twice"), ("a2616101616102", "twice"),
            ("a2616101780161f5", "twice"), ("bf01020102ff", "twice"), ("a17f6161ff01", "no length"),
            ("bf01ff", "break"),
        ]
    )
    func refused(hex: String, words: String) throws {
        let bytes = try #require(Hex.decode(hex))
        let fault = #expect(throws: Malformed.self) { try CBOR(bytes) }
        #expect(fault?.text.contains(words) == true, "\(fault?.text ?? "")")
    }

    @Test("every bound is kept, and what is at the bound is read")
    func bounds() throws {
        var limits = CBOR.Limits()
        limits.bytes = 100
        limits.depth = 4
        limits.entries = 8
        limits.items = 20
        func read(_ bytes: [UInt8]) throws { _ = try CBOR(bytes, limits: limits) }
        func refuses(_ bytes: [UInt8], _ words: String) {
            let fault = #expect(throws: Malformed.self) { try read(bytes) }
            #expect(fault?.text.contains(words) == true, "\(fault?.text ?? "")")
        }
        try read([0x58, 98] + [UInt8](repeating: 0, count: 98))
        refuses([0x58, 99] + [UInt8](repeating: 0, count: 99), "longer")
        try read([0x81, 0x81, 0xC0, 0x81, 0])
        refuses([0x81, 0x81, 0xC0, 0x81, 0x81, 0], "nested")
        try read([0x88] + [UInt8](repeating: 0, count: 8))
        refuses([0x89] + [UInt8](repeating: 0, count: 9), "parts")
        refuses([0x9F] + [UInt8](repeating: 0, count: 9) + [0xFF], "parts")
        refuses([0x5F] + [UInt8](repeating: 0x40, count: 9) + [0xFF], "parts")
        try read([0x84] + (0..<4).flatMap { _ in [0x83, 0, 0, 0] as [UInt8] } + [])
        refuses([0x85] + (0..<5).flatMap { _ in [0x83, 0, 0, 0] as [UInt8] }, "items")
    }

    @Test("a text with an endless run of combining marks is refused, as a value and as a key, also in parts")
    func marks() throws {
        func text(_ count: Int) -> CBORValue { .text("a" + String(repeating: "\u{301}", count: count)) }
        func inParts(_ count: Int) -> CBORValue {
            .encoded([0x7F] + text(count).encoding + CBORValue.text("\u{323}\u{301}").encoding + [0xFF])
        }
        for value in [text(255), inParts(253), .text(String(repeating: "e\u{301}", count: 10_000))] {
            #expect(throws: Never.self) { try CBOR(value.encoding) }
        }
        for value in [
            text(256), inParts(254), .array([text(256)]), .map([(text(256), .integer(1))]), .tag(0, text(256)),
        ]
            as [CBORValue]
        {
            let fault = #expect(throws: Malformed.self) { try CBOR(value.encoding) }
            #expect(fault?.text == "a text has too many combining marks in a row")
        }
        #expect(throws: Malformed.self) { try CBOR(CBORValue.embedded(text(256)).encoding).embedded() }
    }

    @Test("100 000 arrays in one another are refused, and not recursed into")
    func deep() {
        let fault = #expect(throws: Malformed.self) { try CBOR([UInt8](repeating: 0x81, count: 100_000)) }
        #expect(fault?.text == "the CBOR is nested deeper than 16")
    }

    @Test("encoded CBOR in a byte string keeps its bytes, and its own form is checked")
    func embedded() throws {
        // The map inside has a number in a longer form than necessary.
        let item = try CBOR([0xD8, 0x18, 0x44, 0xA1, 0x18, 0x01, 0x02])
        let inside = try item.embedded()
        #expect(inside.encoded == [0xA1, 0x18, 0x01, 0x02])
        #expect(inside[1]?.unsigned == 2)
        #expect(try CBOR([0xD8, 0x18, 0x5F, 0x41, 0x81, 0x41, 0x07, 0xFF]).embedded().array?.first?.unsigned == 7)
        #expect(throws: Malformed.self) { try CBOR([0xD8, 0x18, 0x42, 0x81, 0x81]).embedded() }
        #expect(throws: Malformed.self) { try CBOR([0xD8, 0x18, 0x42, 0x01, 0x01]).embedded() }
        #expect(throws: Malformed.self) { try CBOR([0xC0, 0x41, 0x01]).embedded() }
        #expect(throws: Malformed.self) { try CBOR([0x01]).embedded() }
    }

    @Test("what is written is read as the same")
    func written() throws {
        let value: CBORValue = [
            "a": [1, -1, 23, 24, 255, 256, 65535, 65536, 4_294_967_296, -4_294_967_297], "b": true, "c": .null,
            -1: .bytes([1, 2, 3]), 4: .tag(1004, "2026-11-28"), "e": .embedded(["x": false]),
            "f": .encoded([0x18, 0x01]),
        ]
        let item = try CBOR(value.encoding)
        #expect(
            item.words
                == "{a:[1,-1,23,24,255,256,65535,65536,4294967296,-4294967297],b:true,c:null,-1:010203,"
                + "4:1004(2026-11-28),e:24(a16178f4),f:1}"
        )
        #expect(item["a"]?.array?.map(\.encoded.count) == [1, 1, 1, 2, 2, 3, 3, 5, 9, 9])
        #expect(item["b"]?.bool == true)
        #expect(item[-1]?.bytes == [1, 2, 3])
        #expect(item["z"] == nil)
        #expect(item["a"]?["b"] == nil)
        #expect(try CBOR(CBORValue.integer(.min).encoding).integer == .min)
        #expect(try CBOR([0x3B] + [UInt8](repeating: 0xFF, count: 8)).integer == nil)
    }
}

extension CBOR {
    /// The item in the diagnostic notation of RFC 8949, without its quotation marks.
    fileprivate var words: String {
        switch kind {
        case .unsigned, .negative: integer.map { "\($0)" } ?? "too large"
        case .bytes: bytes.map { Hex.encode($0) } ?? ""
        case .text: text ?? ""
        case .array: "[\((array ?? []).map(\.words).joined(separator: ","))]"
        case .map: "{\((map ?? []).map { "\($0.key.words):\($0.value.words)" }.joined(separator: ","))}"
        case .tag: tagged.map { "\($0.tag)(\($0.content.words))" } ?? ""
        case .bool: bool.map { "\($0)" } ?? ""
        case .null: "null"
        case .float: float.map { "\($0)" } ?? ""
        case .simple: "?"
        }
    }
}
