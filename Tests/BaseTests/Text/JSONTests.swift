// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport
import Testing
import Text

/// Returns a random document with limited depth.
private func document(_ numbers: inout SplitMix64) -> JSON {
    if Bool.random(using: &numbers) { return .array(values(&numbers, depth: 0)) }
    return .object(values(&numbers, depth: 0).map { JSON.Member(text(&numbers), $0) })
}

private func values(_ numbers: inout SplitMix64, depth: Int) -> [JSON] {
    (0..<Int.random(in: 0...(depth > 4 ? 1 : 5), using: &numbers)).map { _ in value(&numbers, depth: depth + 1) }
}

private func value(_ numbers: inout SplitMix64, depth: Int) -> JSON {
    switch Int.random(in: 0...(depth > 5 ? 3 : 5), using: &numbers) {
    case 0: return .null
    case 1: return .bool(Bool.random(using: &numbers))
    case 2:
        let digits = ["0", "-0", "17", "-3.25", "1e9", "2.5E-7", "12345678901234567890"]
        return .number(digits.randomElement(using: &numbers) ?? "0")
    case 3: return .string(text(&numbers))
    case 4: return .array(values(&numbers, depth: depth))
    default: return .object(values(&numbers, depth: depth).map { JSON.Member(text(&numbers), $0) })
    }
}

private func text(_ numbers: inout SplitMix64) -> String {
    let scalars: [Unicode.Scalar] = [
        "a", "\"", "\\", "/", "\u{0}", "\u{8}", "\n", "\u{1F}", "\u{7F}", "ä", "€", "😀", "}",
    ]
    let count = Int.random(in: 0...6, using: &numbers)
    let picked = (0..<count).compactMap { _ in scalars.randomElement(using: &numbers) }
    return String(String.UnicodeScalarView(picked))
}

private func isAccepted(_ text: [UInt8]) -> Bool {
    (try? text.withUnsafeBytes { try JSONScanner.members(of: $0) }) != nil
}

@Suite("JSON values", .timeLimit(.minutes(5))) struct JSONTests {
    @Test("writing and reading a document returns the same document", arguments: 0..<200)
    func roundTrip(seed: UInt64) throws {
        var numbers = SplitMix64(seed: seed)
        let json = document(&numbers)
        #expect(isAccepted(json.bytes))
        #expect(try JSON(json.bytes) == json)
        #expect(try JSON(json.bytes).bytes == json.bytes)
    }

    /// Foundation is the reference. It accepts a comma before a closing bracket, and refuses numbers that are too large
    /// for a Double.
    @Test("mutated documents are accepted exactly when they are JSON", arguments: 0..<200)
    func mutations(seed: UInt64) {
        var numbers = SplitMix64(seed: 1_000 + seed)
        let original = document(&numbers).bytes
        for _ in 0..<50 {
            var bytes = original
            for _ in 0..<Int.random(in: 1...3, using: &numbers) {
                let position = Int.random(in: 0...bytes.count, using: &numbers)
                let byte = Array("[]{}\":,\\u0123dDnulltrue. -\n".utf8).randomElement(using: &numbers) ?? 0
                switch Int.random(in: 0...3, using: &numbers) {
                case 0: bytes.insert(byte, at: position)
                case 1 where position < bytes.count: bytes.remove(at: position)
                case 2 where position < bytes.count: bytes[position] = UInt8.random(in: 0...255, using: &numbers)
                default: bytes.removeSubrange(position...)
                }
            }
            let tree = try? JSON(bytes)
            #expect(isAccepted(bytes) == (tree != nil))
            let isJSON = (try? JSONSerialization.jsonObject(with: Data(bytes))) != nil
            let text = String(decoding: bytes, as: UTF8.self)
            if isJSON, tree == nil {
                #expect(text.contains(/,\s*[\]}]/), "\(text.debugDescription)")
            } else if tree != nil, !isJSON {
                #expect(text.contains(/[eE][+-]?[0-9]{3}/), "\(text.debugDescription)")
            }
            // An accepted document survives writing and reading.
            if let tree { #expect((try? JSON(tree.bytes)) == tree) }
        }
    }

    @Test(
        "escapes are decoded",
        arguments: [
            (#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{C}\n\r\t"),
            (#"GET\u005fINFO"#, "GET_INFO"),
            (#"\u00e4\u20AC"#, "ä€"),
            (#"\ud83d\ude00"#, "😀"),
            (#"\ufffd\uFFFF"#, "\u{FFFD}\u{FFFF}"),
            (#"\u0000"#, "\u{0}"),
        ] as [(String, String)]
    )
    func escapes(written: String, meant: String) throws {
        #expect(try JSON("[\"\(written)\"]".utf8) == .array([.string(meant)]))
        #expect(try JSON("{\"\(written)\":1}".utf8)[meant] == .number("1"))
    }

    @Test("the last member of a name is used, and all members are kept")
    func duplicates() throws {
        let json = try JSON(#"{"a":1,"b":2,"a":3}"#.utf8)
        #expect(json["a"] == .number("3"))
        #expect(json.members?.count == 3)
    }

    @Test(
        "whole numbers are read in every notation, other numbers are nil",
        arguments: [
            ("1", 1), ("-7", -7), ("2.0", 2), ("1e2", 100), ("-0", 0), ("1.5", nil), ("1e-1", nil), ("1e300", nil),
            ("99999999999", 99_999_999_999), ("123456789012345678901234567890", nil),
        ] as [(String, Int?)]
    )
    func integers(text: String, value: Int?) {
        #expect(JSON.number(text).int == value)
    }

    @Test("only control characters, quotes and backslashes are escaped")
    func writing() {
        let json = JSON.string("a\"b\\c/\u{8}\t\n\u{C}\r\u{1}\u{1F}\u{7F}é😀")
        #expect(
            String(decoding: json.bytes, as: UTF8.self)
                == "\"a\\\"b\\\\c/\\b\\t\\n\\f\\r\\u0001\\u001f\u{7F}é😀\""
        )
    }

    @Test("a byte order mark before the document is skipped")
    func byteOrderMark() throws {
        #expect(try JSON("\u{FEFF}{\"a\":1}".utf8)["a"] == .number("1"))
    }

    @Test("objects with equal members in any order are equal")
    func equality() throws {
        let one = try JSON(#"{"a":1,"b":{"c":[1,2],"d":null}}"#.utf8)
        #expect(try JSON(#"{"b":{"d":null,"c":[1,2]},"a":1}"#.utf8) == one)
        #expect(try JSON(#"{"b":{"d":null,"c":[2,1]},"a":1}"#.utf8) != one)
        #expect(try JSON(#"{"a":1,"b":{"c":[1,2],"d":null},"e":1}"#.utf8) != one)
        #expect(try JSON(#"{"a":1}"#.utf8) != one)
        #expect(try JSON(#"{"a":2,"a":1,"b":{"c":[1,2],"d":null}}"#.utf8) == one)
    }
}
