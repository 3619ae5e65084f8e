// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// A request of a client.
struct HTTPRequest: Sendable {
    let method: String
    /// The target without the query.
    let path: String
    /// The decoded query; of a repeated name the last value.
    let query: [String: String]
    /// The headers by name in lower case.
    let headers: [String: String]
    let body: [UInt8]

    // The maximum number of bytes of head and body.
    static let maximumHead = 65_536
    static let maximumBody = 4 << 20

    /// Reads the next request from `source`, which returns nil at the end; `buffer` keeps the bytes after the request.
    /// Returns nil at the end of the connection, and for anything but a request of HTTP/1.1 with a length.
    init?(from source: () -> [UInt8]?, buffer: inout [UInt8], answerEarly: ([UInt8]) -> Bool) {
        var searched = 0
        var end: Int?
        while end == nil {
            end = Self.endOfHead(buffer, from: max(searched - 3, 0))
            searched = buffer.count
            guard end ?? searched <= Self.maximumHead else { return nil }
            if end == nil {
                guard let more = source() else { return nil }
                buffer += more
            }
        }
        guard let end, let head = Head(buffer[..<(end - 4)]) else { return nil }
        var content = Array(buffer[end...])
        guard head.headers["transfer-encoding"] == nil, let length = Int(head.headers["content-length"] ?? "0"),
            (0...Self.maximumBody).contains(length)
        else { return nil }
        if head.headers["expect"] != nil, content.count < length {
            guard answerEarly(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) else { return nil }
        }
        while content.count < length {
            guard let more = source() else { return nil }
            content += more
        }
        (method, headers, body) = (head.method, head.headers, Array(content.prefix(length)))
        let parts = head.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = Percent.decode(parts.first ?? "") ?? ""
        query = Self.query(parts.count == 2 ? parts[1] : "")
        buffer = Array(content.dropFirst(length))
    }

    /// Whether the client closes the connection after the answer.
    var isLast: Bool { headers["connection"]?.lowercased() == "close" }

    private static func endOfHead(_ bytes: [UInt8], from start: Int) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (start...bytes.count - 4).first { bytes[$0..<$0 + 4].elementsEqual("\r\n\r\n".utf8) }.map { $0 + 4 }
    }

    private struct Head {
        let method: String
        let target: Substring
        var headers: [String: String] = [:]

        init?(_ bytes: ArraySlice<UInt8>) {
            var lines = String(decoding: bytes, as: UTF8.self).split(
                separator: "\r\n",
                omittingEmptySubsequences: false
            )[
                ...
            ]
            guard let words = lines.popFirst()?.split(separator: " "), words.count == 3, words[2].hasPrefix("HTTP/1.")
            else { return nil }
            (method, target) = (String(words[0]), words[1])
            for line in lines {
                guard let colon = line.firstIndex(of: ":") else { return nil }
                let value = line[line.index(after: colon)...].drop { $0 == " " }
                headers[line[..<colon].lowercased()] = String(value)
            }
        }
    }

    private static func query(_ text: Substring) -> [String: String] {
        var values: [String: String] = [:]
        for item in text.split(separator: "&") {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Percent.decode(parts[0]) else { continue }
            values[name] = parts.count == 2 ? Percent.decode(parts[1]) ?? "" : ""
        }
        return values
    }
}

/// Percent encoding of RFC 3986 2.1.
enum Percent {
    /// Decodes a text; nil for a percent sign without two digits, and for bytes that are not UTF-8.
    static func decode(_ text: Substring) -> String? {
        PercentEncoding.decode(text.utf8.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 })
            .flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// Encodes all characters except the unreserved ones.
    static func encode(_ text: String) -> String {
        text.utf8.map { byte in
            let isPlain =
                byte < 0x80 && (Character(UnicodeScalar(byte)).isLetter || Character(UnicodeScalar(byte)).isNumber)
            if isPlain || "-._~".utf8.contains(byte) { return String(UnicodeScalar(byte)) }
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}
