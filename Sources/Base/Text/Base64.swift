// SPDX-License-Identifier: Apache-2.0

/// Bytes as text. RFC 4648.
package struct Base64: Sendable {
    /// With padding. RFC 4648, 4.
    package static let standard = Base64(last: "+/", isPadded: true)
    /// For URLs, without padding. RFC 4648, 5; RFC 7515, 2.
    package static let url = Base64(last: "-_", isPadded: false)

    private let alphabet: [UInt8]
    private let isPadded: Bool

    private init(last: String, isPadded: Bool) {
        alphabet = Array(("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + last).utf8)
        self.isPadded = isPadded
    }

    package func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var buffer = 0
        var bits = 0
        for byte in bytes {
            buffer = (buffer & 0x3F) << 8 | Int(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(alphabet[buffer >> bits & 0x3F])
            }
        }
        if bits > 0 { text.append(alphabet[buffer << (6 - bits) & 0x3F]) }
        while isPadded, !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes of a text; nil for other characters, wrong padding, and bits that are left over.
    package func decode(_ text: some StringProtocol) -> [UInt8]? {
        guard isPadded else { return bytes(of: Array(text.utf8)[...]) }
        let digits = Array(text.utf8)
        let padding = digits.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard digits.count.isMultiple(of: 4), padding < 3 else { return nil }
        return bytes(of: digits.dropLast(padding))
    }

    /// Returns the bytes of a text from a program that may write a wrong padding, or none.
    package func decode(ignoringPadding text: some StringProtocol) -> [UInt8]? {
        var digits = Array(text.utf8)[...]
        while digits.last == UInt8(ascii: "=") { digits.removeLast() }
        return bytes(of: digits)
    }

    private func bytes(of digits: ArraySlice<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = 0
        var bits = 0
        for digit in digits {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = digit - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = digit - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0") + 52
            case alphabet[62]: value = 62
            case alphabet[63]: value = 63
            default: return nil
            }
            buffer = (buffer << 6 | Int(value)) & 0x3FFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(buffer >> bits & 0xFF))
            }
        }
        guard bits < 6, buffer & ((1 << bits) - 1) == 0 else { return nil }
        return bytes
    }
}
