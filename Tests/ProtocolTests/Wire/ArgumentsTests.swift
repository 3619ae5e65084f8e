// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Testing
import Text

@Suite("the reader of arguments")
struct ArgumentsTests {
    enum Colour: String, CaseIterable { case red, green, blue }

    /// Reads one member of `line` in each way that there is; the text of the error, or nil.
    private func error(_ line: String, _ read: (Arguments) throws(Failure) -> Void) throws
        -> String?
    {
        try Array(line.utf8).withUnsafeBytes { bytes in
            let arguments = Arguments(try Command(scanning: bytes))
            do throws(Failure) {
                try read(arguments)
                return nil
            } catch {
                return error.message.description
            }
        }
    }

    @Test(
        "a text has its number of bytes, is a string, and has no U+0000",
        arguments: [
            (#"{"x":"ab"}"#, nil), (#"{"x":"äb"}"#, nil),
            (#"{"x":""}"#, "x must be a text of 1 to 3 bytes"), (#"{"x":"äbc"}"#, "x must be a text of 1 to 3 bytes"),
            (#"{"x":"a\u0000"}"#, "x must be a text of 1 to 3 bytes"),
            (#"{"x":1}"#, "x must be a text of 1 to 3 bytes"),
            (#"{"x":["a"]}"#, "x must be a text of 1 to 3 bytes"),
            (#"{}"#, "x is missing: it must be a text of 1 to 3 bytes"),
            (#"{"x":null}"#, "x is missing: it must be a text of 1 to 3 bytes"),
            (#"{"X":"ab"}"#, "x is missing: it must be a text of 1 to 3 bytes"),
            (#"{"x":1,"x":"ab"}"#, nil),
        ]
    )
    func text(line: String, expected: String?) throws {
        #expect(try error(line) { arguments throws(Failure) in _ = try arguments.text("x", 1...3) } == expected)
    }

    @Test(
        "a number is whole and in its range",
        arguments: [
            (#"{"x":5}"#, nil), (#"{"x":5.0}"#, nil), (#"{"x":9}"#, "x must be a whole number from 5 to 8"),
            (#"{"x":5.5}"#, "x must be a whole number from 5 to 8"),
            (#"{"x":1e99}"#, "x must be a whole number from 5 to 8"),
            (#"{"x":"5"}"#, "x must be a whole number from 5 to 8"),
            (#"{}"#, "x is missing: it must be a whole number from 5 to 8"),
        ]
    )
    func number(line: String, expected: String?) throws {
        #expect(try error(line) { arguments throws(Failure) in _ = try arguments.number("x", 5...8) } == expected)
    }

    @Test(
        "a word is one of those that the error names",
        arguments: [
            (#"{"x":"red"}"#, nil), (#"{"x":"Red"}"#, "x must be red, green or blue"),
            (#"{"x":0}"#, "x must be red, green or blue"), (#"{}"#, "x is missing: it must be red, green or blue"),
        ]
    )
    func word(line: String, expected: String?) throws {
        #expect(
            try error(line) { arguments throws(Failure) in _ = try arguments.word("x", Colour.words) } == expected
        )
    }

    @Test(
        "an optional argument may be missing or null, and is refused with another type",
        arguments: [
            (#"{}"#, nil), (#"{"a":null,"b":null,"c":null,"d":null,"e":null}"#, nil),
            (#"{"a":1}"#, "a must be a text of at most 9 bytes"),
            (#"{"b":"1"}"#, "b must be a whole number, at least 1"),
            (#"{"c":0}"#, "c must be true or false"), (#"{"d":true}"#, "d must be red, green or blue"),
            (#"{"e":"red"}"#, "e must be a list of 1 to 2 values, each red, green or blue"),
            (#"{"e":[]}"#, "e must be a list of 1 to 2 values, each red, green or blue"),
            (#"{"e":["red","x"]}"#, "e must be a list of 1 to 2 values, each red, green or blue"),
            (#"{"e":["red","red","red"]}"#, "e must be a list of 1 to 2 values, each red, green or blue"),
        ]
    )
    func optional(line: String, expected: String?) throws {
        let found = try error(line) { arguments throws(Failure) in
            _ = try arguments.optionalText("a", 0...9)
            _ = try arguments.optionalNumber("b", 1...Int.max)
            _ = try arguments.flag("c")
            _ = try arguments.optionalWord("d", Colour.words)
            _ = try arguments.words("e", 1...2, Colour.words)
        }
        #expect(found == expected)
    }

    @Test(
        "a hash has 64 hexadecimal digits",
        arguments: [
            (String(repeating: "aB", count: 32), nil),
            (String(repeating: "ab", count: 31), "x must be 64 hexadecimal digits"),
            (String(repeating: "g", count: 64), "x must be 64 hexadecimal digits"),
        ]
    )
    func hash(digits: String, expected: String?) throws {
        let found = try error(#"{"x":"\#(digits)"}"#) { arguments throws(Failure) in _ = try arguments.hash("x") }
        #expect(found == expected)
    }

    @Test(
        "a secret has the same wording, and its value is in no error",
        arguments: [
            (#"{"x":"123456"}"#, nil), (#"{"x":"654321"}"#, "x must be six digits"),
            (#"{"x":6}"#, "x must be six digits"),
            (#"{}"#, "x is missing: it must be six digits"),
            (#"{"x":null}"#, "x is missing: it must be six digits"),
        ]
    )
    func secret(line: String, expected: String?) throws {
        let found = try error(line) { arguments throws(Failure) in
            _ = try arguments.secret("x", "six digits") {
                $0.withBytes { $0.elementsEqual("123456".utf8) } ? true : nil
            }
        }
        #expect(found == expected)
    }
}
