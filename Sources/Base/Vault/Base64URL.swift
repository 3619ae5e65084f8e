// SPDX-License-Identifier: GPL-3.0-or-later

/// Base 64 for URLs, without padding. RFC 4648, 5; RFC 7515, 2.
package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
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
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes of a text; nil for other characters, for padding, and for bits that are left over.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = 0
        var bits = 0
        for character in text.utf8 {
            let value: UInt8
            switch character {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = character - UInt8(ascii: "0") + 52
            case UInt8(ascii: "-"): value = 62
            case UInt8(ascii: "_"): value = 63
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
