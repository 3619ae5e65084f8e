// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@Suite("Percent-encoding") struct PercentEncodingTests {
    @Test(
        "pairs of digits are decoded once, and everything else stays",
        arguments: [
            ("", ""), ("a+b", "a+b"), ("https%3A%2f%2Fa", "https://a"), ("%2541", "%41"), ("%c3%A4", "ä"),
            ("%00", "\0"),
        ]
    )
    func decoded(text: String, expected: String) {
        #expect(PercentEncoding.decode(text.utf8) == Array(expected.utf8))
    }

    @Test("a percent sign without two digits is refused", arguments: ["%", "a%", "%4", "%4g", "%%41", "% 1"])
    func refused(text: String) { #expect(PercentEncoding.decode(text.utf8) == nil) }
}
