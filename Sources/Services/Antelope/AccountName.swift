// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A name of an account, an action or a permission: up to 12 characters of `.12345a-z`, and a thirteenth of `.1-5a-j`.
package struct AccountName: Sendable, Hashable, CustomStringConvertible {
    /// The characters as five bits each, the first one in the high bits; the thirteenth has four bits.
    package let value: UInt64

    package init(value: UInt64) { self.value = value }

    /// Reads a name. Only the canonical text is accepted: no dots at the end.
    package init(_ text: String) throws(Malformed) {
        var value: UInt64 = 0
        let characters = Array(text.utf8)
        guard characters.count <= 13, characters.last != UInt8(ascii: ".") else { throw Self.failure }
        for (index, character) in characters.enumerated() {
            guard let code = Self.code(character), index < 12 || code < 16 else { throw Self.failure }
            value |= index < 12 ? UInt64(code) << UInt64(59 - 5 * index) : UInt64(code)
        }
        self.value = value
    }

    private static let failure = Malformed(
        "a name has 1 to 12 of the characters a-z, 1-5 and '.', and no '.' at its end"
    )

    private static func code(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "."): 0
        case UInt8(ascii: "1")...UInt8(ascii: "5"): character - UInt8(ascii: "1") + 1
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 6
        default: nil
        }
    }

    private static let characters = Array(".12345abcdefghijklmnopqrstuvwxyz".utf8)

    package var description: String {
        var text = (0..<12).map { Self.characters[Int(value >> UInt64(59 - 5 * $0) & 0x1F)] }
        text.append(Self.characters[Int(value & 0x0F)])
        while text.last == UInt8(ascii: ".") { text.removeLast() }
        return String(decoding: text, as: UTF8.self)
    }
}
