// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL

/// Certificates as text. RFC 7468.
package enum PEM {
    private static let begin = "-----BEGIN CERTIFICATE-----"
    private static let end = "-----END CERTIFICATE-----"

    /// Encodes a DER certificate in lines of 64 characters.
    package static func certificate(_ der: [UInt8]) -> String {
        var lines = [begin]
        var text = Substring(base64(der))
        while !text.isEmpty {
            lines.append(String(text.prefix(64)))
            text = text.dropFirst(64)
        }
        return (lines + [end, ""]).joined(separator: "\n")
    }

    /// Returns the DER of the first certificate in a text; nil if there is none.
    package static func decode(_ text: String) -> [UInt8]? {
        let lines = text.split(whereSeparator: \.isNewline)
        guard let first = lines.firstIndex(where: { $0 == begin }),
            let last = lines[first...].firstIndex(where: { $0 == end })
        else { return nil }
        let body = lines[(first + 1)..<last].joined()
        return decodeBase64(body)
    }

    /// RFC 4648, 4.
    package static func base64(_ bytes: [UInt8]) -> String {
        var out = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = EVP_EncodeBlock(&out, bytes, Int32(bytes.count))
        return String(decoding: out.prefix(Int(max(count, 0))), as: UTF8.self)
    }

    static func decodeBase64(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        let padding = digits.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard !digits.isEmpty, digits.count.isMultiple(of: 4), padding < 3 else { return nil }
        var out = [UInt8](repeating: 0, count: digits.count / 4 * 3)
        let count = EVP_DecodeBlock(&out, digits, Int32(digits.count))
        guard Int(count) == out.count else {
            ERR_clear_error()
            return nil
        }
        return out.dropLast(padding)
    }
}
