// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Text

/// The parts of an HTTP request at the browser port that the answer depends on.
package struct ActivationRequest: Sendable, Equatable {
    package enum Method: Sendable, Equatable { case get, head, options, other }

    package var method: Method
    package var path: String
    /// `key=value` or `key` of the query, decoded, in their order.
    package var arguments: [String]
    package var host: String?
    /// The origin of a web page. Other programs send none, or that of the address to which they connect.
    package var origin: String?
    /// Whether the request has a header that each browser sends, and that no page can change: `User-Agent:
    /// Mozilla/...`, `Accept-Language` or `Sec-Fetch-Site`.
    package var isOfBrowser: Bool
    /// The requested WebSocket version, empty if missing; nil if the request is not for a WebSocket.
    package var webSocketVersion: String?
    /// Whether the name of each header is a token. RFC 9110, 5.1. A folded line is none.
    package var hasValidHeaders = true
    /// `Sec-WebSocket-Key`, the base 64 of 16 bytes; nil without a valid one.
    package var webSocketKey: String?

    package init(
        _ method: Method,
        _ path: String,
        arguments: [String] = [],
        host: String?,
        origin: String? = nil,
        isOfBrowser: Bool = false,
        webSocketVersion: String? = nil,
        webSocketKey: String? = nil
    ) {
        self.method = method
        self.path = path
        self.arguments = arguments
        self.isOfBrowser = isOfBrowser
        self.host = host
        self.origin = origin
        self.webSocketVersion = webSocketVersion
        self.webSocketKey = webSocketKey
    }
}

extension ActivationRequest {
    /// Reads a request that libmicrohttpd has parsed. `target` is the request target as the client has written it.
    /// RFC 9112, 3.2.
    package init(_ method: String, target: [UInt8], headers: [(name: String, value: String)]) {
        func values(_ name: String) -> [String] {
            headers.filter { $0.name.isASCII && $0.name.lowercased() == name }.map(\.value.asciiOnly)
        }
        /// The tokens of a list. RFC 9110, 5.6.1.
        func tokens(_ name: String) -> [String] {
            values(name).flatMap { $0.split(separator: ",") }.map { token in
                String(token.drop { $0 == " " }.prefix { $0 != " " }).lowercased()
            }
        }
        let (authority, path, query) = Self.parts(of: target)
        let methods: [String: Method] = ["GET": .get, "HEAD": .head, "OPTIONS": .options]
        // Two values are a request inside another one, or an attempt to hide one of them.
        let hosts = values("host")
        let origins = values("origin")
        self.init(
            methods[method.asciiOnly] ?? .other,
            Self.decode(path),
            arguments: query.split(separator: UInt8(ascii: "&")).prefix(Self.maximumArguments).map { Self.decode($0) },
            host: hosts.count == 1 ? authority ?? hosts.first : nil,
            origin: origins.isEmpty ? nil : origins.joined(separator: ", "),
            isOfBrowser: values("user-agent").contains { $0.hasPrefix("Mozilla/") }
                || !values("accept-language").isEmpty || !values("sec-fetch-site").isEmpty
        )
        hasValidHeaders = headers.allSatisfy { $0.name.utf8.isHTTPToken }
        guard tokens("upgrade").contains("websocket"), tokens("connection").contains("upgrade") else { return }
        webSocketVersion = values("sec-websocket-version").joined(separator: ", ")
        let keys = values("sec-websocket-key")
        if keys.count == 1, let key = keys.first, Base64.standard.decode(key)?.count == 16 { webSocketKey = key }
    }

    private static let maximumArguments = 64

    /// The authority of an absolute target, the path, and the query.
    private static func parts(of target: [UInt8]) -> (String?, ArraySlice<UInt8>, ArraySlice<UInt8>) {
        var rest = target[...]
        var authority: String?
        let scheme = Array("http://".utf8)
        if rest.prefix(scheme.count).map({ $0 | 0x20 }).elementsEqual(scheme.map { $0 | 0x20 }) {
            rest = rest.dropFirst(scheme.count)
            let host = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
            authority = String(decoding: host, as: UTF8.self).asciiOnly
            rest = rest[host.endIndex...]
        }
        let path = rest.prefix { $0 != UInt8(ascii: "?") }
        return (authority, path, rest[path.endIndex...].dropFirst())
    }

    /// Decodes the escapes of a URI. RFC 3986, 2.1. What is no escape stays as it is. A text that cannot be compared is
    /// empty.
    private static func decode(_ text: ArraySlice<UInt8>) -> String {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let high = Hex.value(rest[rest.startIndex]),
                let low = Hex.value(rest[rest.startIndex + 1])
            {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        let decoded = String(decoding: bytes, as: UTF8.self)
        return decoded.isComparable ? decoded : ""
    }
}

/// The action of the server for a request.
package enum ActivationDecision: Sendable, Equatable {
    case answer(HTTPAnswer)
    /// The request is not allowed; the reason is for the log.
    case refuse(HTTPAnswer, reason: String)
    /// The browser waits for the end of an authentication. TR-03124-1 2.2.1.
    case authenticate(tcTokenURL: String)
    /// The user interface shows its window.
    case showUserInterface(module: String)
    /// The connection becomes a WebSocket; `accept` is the value of `Sec-WebSocket-Accept`.
    case upgrade(accept: String)
}

/// Decides whether a request at the browser port is allowed. docs/protocol/browsers.md.
package struct ActivationRules: Sendable {
    /// The origins whose web pages may open a WebSocket, as browsers write them: `https://example.org`.
    package let origins: Set<String>
    /// The origins of the port itself. Only badged could serve a page of these origins, and it serves none with
    /// scripts.
    private let ownOrigins: Set<String>
    package let identity: ActivationIdentity

    /// The names of this computer in a Host header.
    private static let hosts = ["localhost", "127.0.0.1", "[::1]"]

    /// `port` is the port of the server; nil if it has no origin of its own.
    package init(origins: Set<String> = [], port: UInt16? = nil, identity: ActivationIdentity) {
        self.origins = origins
        self.identity = identity
        // An origin has no port if it is the one of its scheme. RFC 6454 6.2.
        ownOrigins = Set(port.map { port in Self.hosts.map { "http://\($0)" + (port == 80 ? "" : ":\(port)") } } ?? [])
    }

    package func decide(_ request: ActivationRequest) -> ActivationDecision {
        guard request.hasValidHeaders else {
            return .refuse(.malformed(identity), reason: "request refused: the name of a header is not valid")
        }
        // A page can make its own domain resolve to this computer (DNS rebinding), but Host still has that domain.
        guard let host = request.host, Self.isLocal(host) else {
            let name = request.host.map { "'\($0)' is not a name of this computer" } ?? "is missing"
            return .refuse(.forbidden(identity), reason: "request refused: Host \(name)")
        }
        if let version = request.webSocketVersion { return webSocket(request, version) }
        guard request.path == "/eID-Client" else {
            return .answer(Self.isKernel(request.path) ? .upgradeRequired(identity) : .notFound(identity))
        }
        switch request.method {
        case .options, .head: return .answer(.preflight(identity))
        case .other: return .answer(.notFound(identity))
        case .get: return client(request)
        }
    }

    /// Decides by the first known argument. The case of its letters does not matter.
    private func client(_ request: ActivationRequest) -> ActivationDecision {
        for argument in request.arguments {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count == 2 ? String(parts[1]) : ""
            switch parts.first?.lowercased() {
            case "tctokenurl": return .authenticate(tcTokenURL: value)
            case "status": return .answer(value.lowercased() == "json" ? .statusJSON(identity) : .status(identity))
            case "showui": return .showUserInterface(module: value)
            default: continue
            }
        }
        return .answer(.notFound(identity))
    }

    private func webSocket(_ request: ActivationRequest, _ version: String) -> ActivationDecision {
        guard request.method == .get, Self.isKernel(request.path) else { return .answer(.notFound(identity)) }
        if let origin = request.origin, let reason = refusal(of: origin, request) {
            return .refuse(.forbidden(identity), reason: "WebSocket refused: Origin '\(origin)' \(reason)")
        }
        // RFC 6455 4.2.2.
        guard version == "13" else { return .answer(.wrongWebSocketVersion(identity)) }
        guard let key = request.webSocketKey, let accept = try? WebSocketKey.accept(key) else {
            return .answer(.wrongWebSocketKey(identity))
        }
        return .upgrade(accept: accept)
    }

    /// Returns why an origin may not open a WebSocket; nil if it may.
    ///
    /// Some libraries of other programs send the origin of the address to which they connect. A browser sends this
    /// origin only for a page that was loaded from this port, for instance when another program had the port before.
    private func refusal(of origin: String, _ request: ActivationRequest) -> String? {
        if origins.contains(origin) { return nil }
        guard ownOrigins.contains(origin.lowercased()) else {
            return "is a web page that [activation] origins does not list"
        }
        return request.isOfBrowser ? "is a page of this port in a browser, and badged serves no such page" : nil
    }

    private static func isKernel(_ path: String) -> Bool { path == "/eID-Kernel" || path == "/eID-Kernel/" }

    /// Whether a Host header is `localhost`, 127.0.0.1 or [::1], with or without a port.
    private static func isLocal(_ host: String) -> Bool {
        hosts.contains { name in
            guard host.lowercased().hasPrefix(name) else { return false }
            let port = host.utf8.dropFirst(name.utf8.count)
            guard let first = port.first else { return true }
            return first == UInt8(ascii: ":") && UInt16(String(decoding: port.dropFirst(), as: UTF8.self)) != nil
        }
    }
}
