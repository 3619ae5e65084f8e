// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

/// Returns the scanner's error text for a text; nil when the text is valid JSON.
private func complaint(_ text: [UInt8]) -> String? {
    do {
        _ = try text.withUnsafeBytes { try JSONScanner.members(of: $0) }
        return nil
    } catch let error as Malformed {
        return error.text
    } catch {
        return "another error: \(error)"
    }
}

private func complaint(_ text: String) -> String? { complaint(Array(text.utf8)) }

@Suite("JSON scanner", .timeLimit(.minutes(5))) struct JSONScannerTests {
    /// Inputs and error texts recorded from AusweisApp2 1.26.2 (01-basic.txt, sim-request-field.txt). All rows agree.
    /// Some recorded frames contain a line feed. badged receives them as two lines; this test scans them as one text.
    @Test(
        "errors have the SDK's texts and offsets",
        arguments: [
            ("", "illegal value (offset: 0)"),
            (" ", "illegal value (offset: 1)"),
            ("x", "illegal value (offset: 1)"),
            ("{", "unterminated object (offset: 1)"),
            ("null", "illegal value (offset: 1)"),
            ("1", "illegal value (offset: 1)"),
            (#""GET_INFO""#, "illegal value (offset: 1)"),
            (#"{"cmd":"GET_INFO""#, "unterminated string (offset: 17)"),
            ("{'cmd':'GET_INFO'}", "unterminated object (offset: 2)"),
            (#"{"cmd":"GET_INFO"}{"cmd":"GET_INFO"}"#, "garbage at the end of the document (offset: 18)"),
            (#"{"cmd":"GET_INFO",}"#, "object is missing after a comma (offset: 19)"),
            (#"{"requestId":"q","cmd":}"#, "object is missing after a comma (offset: 24)"),
            (#"{"cmd":"GET_INFO" "requestId":1}"#, "unterminated object (offset: 19)"),
            ("{\"cmd\":\"GET_INFO\"}\n{\"cmd\":\"GET_API_LEVEL\"}", "garbage at the end of the document (offset: 19)"),
            (
                "{\"cmd\":\"GET_INFO\",\"requestId\":\"a\"}\n{\"cmd\":\"GET_API_LEVEL\",\"requestId\":\"b\"}",
                "garbage at the end of the document (offset: 35)"
            ),
        ] as [(String, String)]
    )
    func recorded(text: String, expected: String) {
        #expect(complaint(text) == expected)
    }

    @Test(
        "text that the SDK accepts is accepted",
        arguments: [
            "{}", "[]", #"[{"cmd":"GET_INFO"}]"#, #"{"cmd":"NO","cmd":"GET_INFO"}"#,
            #"{"cmd":"GET_INFO","extra":{"a":[1,2]}}"#, #"{ "cmd" : "GET_INFO" }"#, #"{"cmd":"GET\u005fINFO"}"#,
            "\u{FEFF}{\"cmd\":\"GET_INFO\"}", "{\"cmd\":\"GET_INFO\"}\n", "\t\r\n {} \t\r\n",
            #"{"a":"\ud83d\uDE00\u0000\uD7FF\uE000\uFFFD\uFFFF\u007f"}"#, "[\"\u{7F}\u{80}\u{2028}\"]",
        ]
    )
    func accepted(text: String) {
        #expect(complaint(text) == nil)
    }

    @Test(
        "every other error has its own text and the offset of the byte",
        arguments: [
            (#"{"a""#, "unterminated string (offset: 4)"),
            (#"{"a" 1}"#, "missing name separator (offset: 6)"),
            (#"{"a":"#, "unterminated object (offset: 5)"),
            ("[", "unterminated array (offset: 1)"),
            ("[1", "invalid termination by number (offset: 2)"),
            ("[1 ", "unterminated array (offset: 3)"),
            ("[1,", "unterminated array (offset: 3)"),
            (#"["a" "b"]"#, "missing value separator (offset: 6)"),
            ("[1,]", "object is missing after a comma (offset: 4)"),
            ("[,]", "illegal value (offset: 2)"),
            ("[nul]", "illegal value (offset: 4)"),
            ("[tru", "illegal value (offset: 4)"),
            ("[-]", "illegal number (offset: 2)"),
            ("[+1]", "illegal number (offset: 1)"),
            ("[1.]", "illegal number (offset: 3)"),
            ("[.5]", "illegal number (offset: 1)"),
            ("[1e]", "illegal number (offset: 3)"),
            ("[1e+]", "illegal number (offset: 4)"),
            ("[NaN]", "illegal number (offset: 1)"),
            ("[01]", "missing value separator (offset: 3)"),
            (#"["\x"]"#, "invalid escape sequence (offset: 4)"),
            (#"["\u12G4"]"#, "invalid escape sequence (offset: 6)"),
            (#"["\"#, "invalid escape sequence (offset: 3)"),
            ("{} x", "garbage at the end of the document (offset: 3)"),
            ("{}\u{0}", "garbage at the end of the document (offset: 2)"),
        ] as [(String, String)]
    )
    func others(text: String, expected: String) {
        #expect(complaint(text) == expected)
    }

    @Test("a raw control character in a string is an error with its offset, at every place", arguments: UInt8(0)..<0x20)
    func control(character: UInt8) {
        for (head, tail) in [
            (#"{"a":"x"#, #""}"#), (#"{"a"#, #"":1}"#), (#"{"a":[{"b":["#, #""]}]}"#), (#"["\n"#, #""]"#),
            (#"{"a":{"b"#, #"":1}}"#),
        ] {
            let text = head.hasSuffix("[") ? head + "\"" : head
            let expected = "control character in a string (offset: \(text.utf8.count))"
            #expect(complaint(Array(text.utf8) + [character] + Array(tail.utf8)) == expected)
        }
    }

    @Test(
        "a surrogate without its partner is an error with its offset",
        arguments: [
            (#"{"a":"\ud800"}"#, 6), (#"{"a":"\uDFFF"}"#, 6), (#"{"a":"x\udc00\ud800"}"#, 7),
            (#"{"a":"\ud83d\ud83d\ude00"}"#, 6), (#"{"a":"\ud83d\n"}"#, 6), (#"{"a":"\ud83dude00"}"#, 6),
            (#"{"a":"\ud83d\u0041"}"#, 6), (#"{"\ud83d":1}"#, 2), (#"{"a":["\ud83d\ude00\ude00"]}"#, 19),
            (#"{"a":{"b\udbff":1}}"#, 8), (#"{"a":"\ud83d \ude00"}"#, 6),
        ]
    )
    func surrogate(text: String, offset: Int) {
        #expect(complaint(text) == "lone surrogate in a string (offset: \(offset))")
    }

    @Test(
        "an escape that ends early is an error",
        arguments: [
            (#"{"a":"\ud83d"#, "lone surrogate in a string (offset: 6)"),
            (#"{"a":"\ud83d\"#, "lone surrogate in a string (offset: 6)"),
            (#"{"a":"\ud83d\u"#, "invalid escape sequence (offset: 14)"),
            (#"{"a":"\ud83d\ude0"}"#, "invalid escape sequence (offset: 17)"),
        ]
    )
    func cutEscape(text: String, expected: String) { #expect(complaint(text) == expected) }

    @Test("1024 nested levels are accepted, and the next bracket is refused at the offset of the SDK")
    func depth() {
        // The recorded offset 1051 belongs to an array that follows 27 bytes.
        let start = #"{"cmd":"GET_INFO","nested":"#
        #expect(start.utf8.count == 27)
        func nested(_ count: Int) -> String {
            start + String(repeating: "[", count: count) + String(repeating: "]", count: count) + "}"
        }
        #expect(complaint(nested(1023)) == nil)
        #expect(complaint(nested(1024)) == "too deeply nested document (offset: 1051)")
        #expect(complaint(String(repeating: "[", count: 100_000)) == "too deeply nested document (offset: 1025)")
        #expect(
            complaint(String(repeating: #"{"a":"#, count: 100_000)) == "too deeply nested document (offset: 5121)"
        )
        // The limit does not apply to the number of elements.
        #expect(complaint("[" + String(repeating: "[],", count: 10_000) + "[]]") == nil)
    }

    @Test(
        "only well-formed UTF-8 is accepted",
        arguments: [
            ([0x80], false),  // continuation alone
            ([0xC0, 0x80], false), ([0xC1, 0xBF], false),  // overlong
            ([0xC2, 0x80], true), ([0xDF, 0xBF], true), ([0xC2], false), ([0xC2, 0x20], false),
            ([0xE0, 0x9F, 0xBF], false),  // overlong
            ([0xE0, 0xA0, 0x80], true), ([0xE2, 0x82], false),
            ([0xED, 0x9F, 0xBF], true), ([0xED, 0xA0, 0x80], false),  // surrogate
            ([0xEF, 0xBF, 0xBF], true),
            ([0xF0, 0x8F, 0xBF, 0xBF], false),  // overlong
            ([0xF0, 0x90, 0x80, 0x80], true), ([0xF4, 0x8F, 0xBF, 0xBF], true),
            ([0xF4, 0x90, 0x80, 0x80], false),  // above U+10FFFF
            ([0xF5, 0x80, 0x80, 0x80], false), ([0xFE], false), ([0xFF], false),
            ([0xF0, 0x9F, 0x98], false), ([0xE2, 0x82, 0xAC, 0xAC], false),
        ] as [([UInt8], Bool)]
    )
    func utf8(bytes: [UInt8], isValid: Bool) {
        let inValue = Array(#"{"a":""#.utf8) + bytes + Array(#""}"#.utf8)
        let inKey = Array(#"{""#.utf8) + bytes + Array(#"":1}"#.utf8)
        #expect((complaint(inValue) == nil) == isValid)
        #expect((complaint(inKey) == nil) == isValid)
        if !isValid {
            let offset = 6 + (bytes == [0xE2, 0x82, 0xAC, 0xAC] ? 3 : 0)
            #expect(complaint(inValue) == "invalid UTF8 string (offset: \(offset))")
        }
        #expect(complaint(bytes) != nil)
    }

    @Test("member ranges cover keys and values as they were written")
    func ranges() throws {
        let text = #" { "a" : [1, {"b":2}] ,"c\n":"x\\" , "d":-1.5e3,"e":true}"#
        let bytes = Array(text.utf8)
        let members = try bytes.withUnsafeBytes { try JSONScanner.members(of: $0) }
        func cut(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
        #expect(members.map { cut($0.key) } == ["a", "c\\n", "d", "e"])
        #expect(members.map { cut($0.value) } == [#"[1, {"b":2}]"#, #""x\\""#, "-1.5e3", "true"])
        #expect(members.map(\.keyHasEscapes) == [false, true, false, false])
        #expect(members.map(\.valueHasEscapes) == [false, true, false, false])
        #expect(members.map(\.kind) == [.array, .string, .number, .bool])
    }
}
