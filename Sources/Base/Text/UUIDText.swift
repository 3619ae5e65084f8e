// SPDX-License-Identifier: Apache-2.0

/// Converts between the 16 bytes of a UUID and its text. RFC 9562, 4.
package enum UUIDText {
    /// Returns 16 bytes in groups of 8, 4, 4, 4 and 12 lower-case digits.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var digits = Substring(Hex.encode(bytes))
        return [8, 4, 4, 4, 12].map { count in
            defer { digits = digits.dropFirst(count) }
            return String(digits.prefix(count))
        }.joined(separator: "-")
    }

    /// Returns the 16 bytes of a UUID, or of 32 digits without dashes; nil for anything else.
    package static func decode(_ text: String) -> [UInt8]? {
        guard text.utf8.count == 32 || text.utf8.count == 36 else { return nil }
        let digits = String(decoding: text.utf8.filter { $0 != UInt8(ascii: "-") }, as: UTF8.self)
        guard let bytes = Hex.decode(digits), bytes.count == 16 else { return nil }
        return text.utf8.count == 32 || text.lowercased() == encode(bytes) ? bytes : nil
    }

    /// Returns a random UUID, which is no secret. RFC 9562, 5.4.
    package static func random() -> String {
        var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        return encode(bytes)
    }
}
