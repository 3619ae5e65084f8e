// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// Base 58 with the alphabet of Bitcoin, for keys and signatures as text.
enum Base58 {
    private static let alphabet = Array("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".utf8)

    /// The maximum number of characters. The longest text is that of a WebAuthn signature.
    static let maximumCount = 4096

    static func encode(_ bytes: [UInt8]) -> String {
        let digits = bytes.prefix { $0 == 0 } + Radix.convert(bytes, from: 256, to: 58)
        return String(decoding: digits.map { alphabet[Int($0)] }, as: UTF8.self)
    }

    /// Returns the bytes of a text; nil for other characters and for a text that is too long.
    static func decode(_ text: Substring) -> [UInt8]? {
        guard text.utf8.count <= maximumCount else { return nil }
        let digits = text.utf8.compactMap { alphabet.firstIndex(of: $0) }.map(UInt8.init)
        guard digits.count == text.utf8.count else { return nil }
        return digits.prefix { $0 == 0 } + Radix.convert(digits, from: 58, to: 256)
    }
}
