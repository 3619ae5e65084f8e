// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HTTP
import Text

/// The HTTP exchange that opens a WebSocket. RFC 6455, 4.
package enum WebSocketHandshake {
    package static let maximumCount = 8192

    /// The key of a new connection.
    static func makeKey() throws(CryptoError) -> String { Base64.standard.encode(try Random.bytes(16)) }

    static func request(host: String, key: String) -> [UInt8] {
        let lines = [
            "GET / HTTP/1.1", "Host: \(host)", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: \(key)", "Sec-WebSocket-Version: 13", "", "",
        ]
        return Array(lines.joined(separator: "\r\n").utf8)
    }

    /// Returns the answer to a request; nil if the request does not open a WebSocket.
    package static func answer(to request: [UInt8]) -> [UInt8]? {
        guard let head = Head(request), head.first.hasPrefix("GET "), head.first.hasSuffix(" HTTP/1.1"),
            head["upgrade"]?.lowercased() == "websocket", head["sec-websocket-version"] == "13",
            let key = head["sec-websocket-key"], Base64.standard.decode(key)?.count == 16,
            let accept = try? WebSocketKey.accept(key)
        else { return nil }
        let lines = [
            "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Accept: \(accept)", "", "",
        ]
        return Array(lines.joined(separator: "\r\n").utf8)
    }

    /// Whether a server has accepted the connection with this key.
    package static func isAccepted(_ answer: [UInt8], key: String) -> Bool {
        guard let head = Head(answer), head.first.hasPrefix("HTTP/1.1 101"), let accept = try? WebSocketKey.accept(key)
        else {
            return false
        }
        return head["sec-websocket-accept"] == accept
    }

    /// Returns the count of a complete head, with its empty line; nil if the bytes hold none yet.
    static func headCount(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (3..<bytes.count).first {
            bytes[$0] == 0x0A && bytes[$0 - 1] == 0x0D && bytes[$0 - 2] == 0x0A && bytes[$0 - 3] == 0x0D
        }.map { $0 + 1 }
    }

    private struct Head {
        let first: String
        private var fields: [String: String] = [:]

        init?(_ bytes: [UInt8]) {
            guard bytes.count <= maximumCount else { return nil }
            let lines = bytes.split(separator: 0x0A).map { line in
                String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
            }
            guard let first = lines.first, first.isASCII else { return nil }
            self.first = first
            for line in lines.dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                // The empty line ends the head.
                if line.isEmpty { continue }
                guard parts.count == 2, parts[0].utf8.isHTTPToken else { return nil }
                guard line.isASCII else { continue }
                fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
            }
        }

        subscript(_ name: String) -> String? { fields[name] }
    }
}
