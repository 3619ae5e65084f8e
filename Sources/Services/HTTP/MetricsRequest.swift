// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Text

/// One request of Prometheus over HTTP, on a socket that systemd has accepted. RFC 9112.
package enum MetricsRequest {
    package enum Answer: Equatable {
        /// `isOpen`: the client asks for OpenMetrics. HEAD wants no body.
        case metrics(isOpen: Bool, withBody: Bool)
        /// A status such as `404 Not Found`.
        case refused(String)
    }

    package static let maximumBytes = 4096
    /// Milliseconds.
    static let timeout: Int64 = 2000

    /// Reads a request up to the empty line.
    /// - Returns: nil if it is too long, incomplete or too slow.
    package static func read(from descriptor: Int32) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: maximumBytes)
        let end = Loop.clock + timeout * 1000
        while bytes.count < maximumBytes {
            let rest = (end - Loop.clock) / 1000
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard rest > 0, poll(&ready, 1, Int32(rest)) == 1 else { return nil }
            let count = Glibc.read(descriptor, &buffer, maximumBytes - bytes.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            bytes += buffer.prefix(count)
            if isComplete(bytes) { return bytes }
        }
        return nil
    }

    private static func isComplete(_ bytes: [UInt8]) -> Bool {
        bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) || bytes.suffix(2).elementsEqual("\n\n".utf8)
    }

    /// What to answer to a request.
    package static func answer(_ bytes: [UInt8]?) -> Answer {
        guard let bytes, let text = String(validating: bytes, as: UTF8.self) else { return .refused("400 Bad Request") }
        let lines = text.split(whereSeparator: \.isNewline)
        let words = (lines.first ?? "").split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[2].hasPrefix("HTTP/1."), words[1].hasPrefix("/") else {
            return .refused("400 Bad Request")
        }
        guard words[1].split(separator: "?", omittingEmptySubsequences: false).first == "/metrics" else {
            return .refused("404 Not Found")
        }
        guard words[0] == "GET" || words[0] == "HEAD" else { return .refused("405 Method Not Allowed") }
        let accept = lines.dropFirst().first { $0.lowercased().hasPrefix("accept:") } ?? ""
        return .metrics(isOpen: accept.contains("application/openmetrics-text"), withBody: words[0] == "GET")
    }

    /// The bytes of a response. The connection ends after it.
    package static func response(_ status: String, _ type: String, _ body: String, withBody: Bool = true) -> String {
        "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n"
            + (status.hasPrefix("405") ? "Allow: GET, HEAD\r\n" : "") + "\r\n" + (withBody ? body : "")
    }
}
