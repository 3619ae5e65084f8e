// SPDX-License-Identifier: GPL-3.0-or-later
import Taps
import Testing
import Text

/// The list of answers to reset that pcsc-tools ships.
@Suite("The list of known cards") struct CardListTests {
    private static let list = """
        # A comment
        3B 8F 80 01 . . . 42
        \tnot the right number of digits
        3B 02 14 50
        \tSchlumberger Multiflex 3k
        \t  another name\t

        3B [01,4]2 14 .0
        \tone of a set
        3B (02|03) 14 50
        \tof a form that is not read
        3B 02 14 [5
        \tan open set
        3b 02 14 50
        \tlower case
        """

    @Test(
        "a pattern has digits, any digit, and sets",
        arguments: [
            ("3B021450", ["Schlumberger Multiflex 3k", "another name", "one of a set", "lower case"]),
            ("3B421470", ["one of a set"]), ("3B321470", []), ("3B0214", []), ("3B02145000", []), ("", []),
        ]
    )
    func names(atr: String, names: [String]) throws {
        let bytes = try #require(Hex.decode(atr))
        #expect(CardList.names(of: bytes, in: Array(Self.list.utf8)) == names)
    }

    @Test("a hostile list is bounded: names, lines, bytes that are no text")
    func hostile() {
        let many = "3B\n" + String(repeating: "\tx\n", count: 1000)
        #expect(CardList.names(of: [0x3B], in: Array(many.utf8)).count == CardList.maximumNames)
        let long = Array("3B\n\t".utf8) + [UInt8](repeating: 0xFF, count: 100_000)
        #expect(CardList.names(of: [0x3B], in: long).allSatisfy { $0.unicodeScalars.count <= 512 })
        let pattern = [UInt8](repeating: UInt8(ascii: "["), count: 100_000) + Array("\n\tx".utf8)
        #expect(CardList.names(of: [0x3B], in: pattern).isEmpty)
    }
}
