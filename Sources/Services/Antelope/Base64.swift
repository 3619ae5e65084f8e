// SPDX-License-Identifier: GPL-3.0-or-later

/// Base 64, in which nodes send ABIs. RFC 4648, 4.
enum Base64 {
    /// Returns the bytes of a text; nil for other characters. Padding is ignored, because some nodes send wrong
    /// padding.
    static func decode(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer: UInt32 = 0
        var bits = 0
        var rest = Array(text.utf8)[...]
        while rest.last == UInt8(ascii: "=") { rest.removeLast() }
        guard rest.count % 4 != 1 else { return nil }
        bytes.reserveCapacity(rest.count * 3 / 4)
        for character in rest {
            let value: UInt8
            switch character {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = character - UInt8(ascii: "0") + 52
            case UInt8(ascii: "+"): value = 62
            case UInt8(ascii: "/"): value = 63
            default: return nil
            }
            buffer = buffer << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
            }
        }
        return bytes
    }
}
