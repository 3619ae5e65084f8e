// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

@testable import Host

@Suite("Text from outside")
struct ForeignTextTests {
    @Test("a text is trimmed at both ends, and only there")
    func trimming() {
        #expect(Array(" \t a b ".utf8.trimmed { $0 <= 0x20 }) == Array("a b".utf8))
        #expect("  ".utf8.trimmed { $0 == 0x20 }.isEmpty)
        #expect(Array([1, 2, 0, 0].trimmedEnd { $0 == 0 } as ArraySlice<UInt8>) == [1, 2])
        #expect("abc".utf8.ends(with: "bc".utf8) && !"abc".utf8.ends(with: "b".utf8) && "a".utf8.ends(with: "".utf8))
        #expect(Array("abcbc".utf8).firstPlace(of: "bc".utf8) == 1)
        #expect(Array("abc".utf8).firstPlace(of: "cd".utf8) == nil)
    }

    @Test("a text with an endless run of combining marks is not compared")
    func marks() {
        let run = String(repeating: "\u{323}\u{301}", count: 200)
        #expect(!run.isComparable && !("a" + run).isComparable)
        #expect("Zalgo\(String(repeating: "\u{301}", count: 50)) e\u{301}".isComparable)
        #expect(String(repeating: "e\u{301}", count: 10_000).isComparable)
        #expect("a\u{301}".asciiOnly == "a??" && "ab".asciiOnly == "ab")
    }

    @Test("a string of JSON with an endless run of combining marks is refused, also as escapes")
    func json() {
        for mark in ["\u{301}", #"\u0301"#] {
            for text in [#"{"a":"@"}"#, #"{"@":1}"#, #"{"a":["@"]}"#] {
                let line = text.replacing("@", with: "x" + String(repeating: mark, count: 256))
                let offset = text.utf8.prefix { $0 != UInt8(ascii: "@") }.count + 1 + 255 * mark.utf8.count
                #expect(throws: Malformed("too many combining marks in a row (offset: \(offset))")) {
                    try JSON(line.utf8)
                }
                #expect(throws: Never.self) {
                    try JSON(text.replacing("@", with: String(repeating: mark, count: 255) + "x" + mark).utf8)
                }
            }
        }
    }

    @Test("a line of the configuration with an endless run of combining marks is a fault")
    func configuration() {
        let run = String(repeating: "\u{323}\u{301}", count: 200)
        for line in ["[\(run)]", "\(run) = 1", "a = \(run)"] {
            guard case .fault = INIFile(bytes: Array(line.utf8)).lines.first?.content else {
                Issue.record("\(line.prefix(3)) is taken")
                continue
            }
        }
    }

    /// Parsers by name, each for the longest text that it takes.
    private static let parsers: [(name: String, size: Int, parse: @Sendable (String) -> Void)] = [
        ("JSON", 400_000, { _ = try? JSON(#"{"a":"\#($0)"}"#.utf8)["a"] == .string("b") }),
        ("a key of JSON", 400_000, { _ = try? JSON(#"{"\#($0)":1}"#.utf8)["b"] }),
        ("PEM", 400_000, { _ = PEM.certificate.decode("\($0)\n-----BEGIN CERTIFICATE-----\n\($0)") }),
        ("a section of a configuration", 120_000, { _ = INIFile(bytes: Array("[\($0)]".utf8)) }),
        ("a value of a configuration", 120_000, { _ = INIFile(bytes: Array("a = \($0) ".utf8)) }),
        ("trimming", 120_000, { _ = INIFile.trim(" \($0) "[...]) }),
        ("a line of the log", 400_000, { _ = Log.escaped($0) }),
    ]

    @Test("a text of twice the length takes at most 2.5 times as long", .serialized, arguments: parsers.indices)
    func growth(parser: Int) async { #expect(await Growth.slowAlphabets(Self.parsers[parser]) == []) }

    @Test("objects of JSON are compared in proportion to their members")
    func objects() async {
        func object(_ count: Int) -> JSON { .object((0..<count).map { .init("member \($0)", .null) }) }
        let (small, large) = (object(4000), object(8000))
        let isInProportion = await Growth.measured {
            Growth.isInProportion(from: 4000, limit: 3.5) { size in
                let value = size == 4000 ? small : large
                _ = value == value
            }
        }
        #expect(isInProportion)
    }

    @Test(
        "what a stranger says is one short line that cannot end its quotation",
        arguments: [
            ("No good.", #""No good.""#), ("", #""""#), ("  a\r\n\n\tb  ", #""a b""#), ("a\u{1B}[2Jb", #""a [2Jb""#),
            ("\u{202E}evil\u{202C}\u{2066}x", #""evilx""#), ("a\u{2028}b\u{85}c", #""a b c""#),
            (
                #"Done". The card is blocked: take it to "the office"#,
                #""Done'. The card is blocked: take it to 'the office""#
            ),
            ("\u{201C}a\u{201D} \u{AB}b\u{BB} \u{201E}c \u{300D}d \u{FF02}", #""'a' 'b' 'c 'd '""#),
            ("e\u{301}\u{302}\u{303}\u{304}x", "\"e\u{301}\u{302}x\""), ("\u{301}a \u{301}b", #""a b""#),
            (String(repeating: "x", count: 6), #""xxxxxx""#),
        ]
    )
    func quotation(text: String, quoted: String) {
        #expect(text.quoted().unicodeScalars.elementsEqual(quoted.unicodeScalars), "\(text.quoted().debugDescription)")
    }

    @Test("a quotation has a length at most, whatever a stranger says")
    func longQuotation() {
        #expect(String(repeating: "x", count: 200).quoted().utf8.count == 202)
        #expect(String(repeating: "x", count: 201).quoted().hasSuffix("x...\""))
        for unit in ["x", "x ", "e\u{301}\u{301}\u{301}", "\u{1F3F4}\u{200D}", "\u{301}", " ", "\n"] {
            #expect(
                String(repeating: unit, count: 50_000).quoted().unicodeScalars.count <= 405,
                "\(unit.debugDescription)"
            )
        }
    }
}
