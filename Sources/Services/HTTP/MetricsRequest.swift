// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import Text

/// One request of Prometheus over HTTP, on a socket that systemd has accepted. RFC 9112.
package enum MetricsRequest {
    package enum Answer: Equatable {
        /// `isOpen`: the client asks for OpenMetrics. HEAD wants no body.
        case metrics(isOpen: Bool, withBody: Bool)
        case refused(Status)
    }

    /// The status of a response, and its reason phrase.
    package enum Status: String, Sendable {
        case ok = "200 OK"
        case badRequest = "400 Bad Request"
        case forbidden = "403 Forbidden"
        case notFound = "404 Not Found"
        case methodNotAllowed = "405 Method Not Allowed"
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

    /// What to answer to a request. `hosts` are the names of this computer, in lower case, beside the loopback ones.
    ///
    /// A web page can make its own name resolve to this computer (DNS rebinding), but Host still has that name.
    package static func answer(_ bytes: [UInt8]?, hosts: Set<String> = []) -> Answer {
        guard let bytes, bytes.count <= maximumBytes, let head = Head(bytes) else { return .refused(.badRequest) }
        guard head.hosts.allSatisfy({ LoopbackSockets.areReached(by: $0) || hosts.contains($0) }) else {
            return .refused(.forbidden)
        }
        guard head.path == "/metrics" else { return .refused(.notFound) }
        guard head.method == "GET" || head.method == "HEAD" else { return .refused(.methodNotAllowed) }
        let open = head.weight(of: "application", "openmetrics-text", isNamed: true)
        let isOpen = open > 0 && open >= head.weight(of: "text", "plain", isNamed: false)
        return .metrics(isOpen: isOpen, withBody: head.method == "GET")
    }

    /// The request line and the headers that count. Values of headers may have any bytes but controls. RFC 9110, 5.5.
    private struct Head {
        let method: String
        let path: String
        /// The host of the target and that of the Host header, if they are there.
        private(set) var hosts: [String] = []
        /// The media ranges of all Accept headers.
        private var accepted: [MediaRange] = []

        init?(_ bytes: [UInt8]) {
            var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
                line.last == 0x0D ? line.dropLast() : line
            }
            let first = lines.removeFirst().split(separator: 0x20, omittingEmptySubsequences: false)
            guard first.count == 3, first[0].isHTTPToken, first[2].starts(with: "HTTP/1.".utf8),
                let target = Self.target(first[1])
            else { return nil }
            method = String(decoding: first[0], as: UTF8.self)
            path = target.path
            var authorities = target.authority.map { [$0] } ?? []
            var hostCount = 0
            for line in lines where !line.isEmpty {
                let name = line.prefix { $0 != UInt8(ascii: ":") }
                let value = line[name.endIndex...].dropFirst()
                // A folded line has no token before the colon.
                guard name.endIndex < line.endIndex, name.isHTTPToken,
                    value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
                else { return nil }
                switch String(decoding: name, as: UTF8.self).lowercased() {
                case "accept": accepted += value.split(separator: UInt8(ascii: ",")).compactMap(MediaRange.init)
                case "host":
                    hostCount += 1
                    authorities.append(ArraySlice(value.trimmed { $0 == 0x20 || $0 == 0x09 }))
                default: break
                }
            }
            guard hostCount <= 1 else { return nil }
            hosts = authorities.map(Self.host)
        }

        /// The host of an authority, in lower case and without its port; the whole text if it has another form.
        private static func host(_ authority: ArraySlice<UInt8>) -> String {
            let isBracketed = authority.first == UInt8(ascii: "[")
            let host = authority.dropFirst(isBracketed ? 1 : 0).prefix { $0 != UInt8(ascii: isBracketed ? "]" : ":") }
            let port = authority[host.endIndex...].dropFirst(isBracketed ? 1 : 0)
            let isPort =
                port.isEmpty
                || port.first == UInt8(ascii: ":") && port.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
            return String(decoding: isPort ? host : authority, as: UTF8.self).lowercased()
        }

        /// The path of a target in origin form or absolute form, and its authority. RFC 9112, 3.2.
        private static func target(_ target: ArraySlice<UInt8>) -> (authority: ArraySlice<UInt8>?, path: String)? {
            guard target.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
            var rest = target
            var named: ArraySlice<UInt8>?
            if rest.first != UInt8(ascii: "/") {
                let text = String(decoding: rest, as: UTF8.self).lowercased()
                guard let scheme = ["http://", "https://"].first(where: { text.hasPrefix($0) }) else { return nil }
                rest = rest.dropFirst(scheme.utf8.count)
                let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
                guard !authority.isEmpty else { return nil }
                named = authority
                rest = rest[authority.endIndex...]
            }
            return (named, String(decoding: rest.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self))
        }

        /// The weight of a media type in thousandths: that of the most exact range. Without Accept all types have the same.
        /// `isNamed`: only a range that names the type counts.
        func weight(of type: String, _ subtype: String, isNamed: Bool) -> Int {
            let ranges = accepted.filter { $0.subtype == subtype && $0.type == type }
            if !ranges.isEmpty || isNamed { return ranges.map(\.weight).max() ?? 0 }
            return (accepted.first { $0.type == type && $0.subtype == "*" } ?? accepted.first { $0.type == "*" })?
                .weight
                ?? 0
        }
    }

    /// An entry of Accept. RFC 9110, 12.5.1.
    private struct MediaRange {
        let type: String
        let subtype: String
        /// Thousandths; 0: not acceptable. RFC 9110, 12.4.2.
        let weight: Int

        init?(_ bytes: ArraySlice<UInt8>) {
            let parts = String(decoding: bytes, as: UTF8.self).lowercased().utf8.filter { $0 != 0x20 && $0 != 0x09 }
                .split(separator: UInt8(ascii: ";"))
            guard let names = parts.first?.split(separator: UInt8(ascii: "/")), names.count == 2 else { return nil }
            type = String(decoding: names[0], as: UTF8.self)
            subtype = String(decoding: names[1], as: UTF8.self)
            let quality = parts.dropFirst().first { $0.starts(with: "q=".utf8) }
            weight = quality.map { $0.dropFirst(2).httpQuality } ?? 1000
        }
    }

    /// The address at which a connection has arrived, as a Host header has it; nil: it is no connection over TCP.
    package static func ownAddress(of descriptor: Int32) -> String? {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var name = [CChar](repeating: 0, count: 64)
        let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getsockname(descriptor, address, &size) == 0
                    && [AF_INET, AF_INET6].contains(Int32(address.pointee.sa_family))
                    && getnameinfo(address, size, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST) == 0
            }
        }
        guard isNamed else { return nil }
        let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // IPv4 at a socket of IPv6.
        return text.hasPrefix("::ffff:") ? String(text.dropFirst(7)) : text
    }

    /// The bytes of a response. The connection ends after it.
    package static func response(_ status: Status, _ type: String, _ body: String, withBody: Bool = true) -> String {
        "HTTP/1.1 \(status.rawValue)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n"
            + (status == .methodNotAllowed ? "Allow: GET, HEAD\r\n" : "") + "\r\n" + (withBody ? body : "")
    }
}
