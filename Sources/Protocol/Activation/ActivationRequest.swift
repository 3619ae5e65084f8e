// SPDX-License-Identifier: GPL-3.0-or-later

/// The parts of an HTTP request at the browser port that the answer depends on.
package struct ActivationRequest: Sendable, Equatable {
    package enum Method: Sendable, Equatable { case get, head, options, other }

    package var method: Method
    package var path: String
    /// `key=value` or `key` of the query, decoded, in their order.
    package var arguments: [String]
    package var host: String?
    /// The origin of a web page; other programs send none.
    package var origin: String?
    /// The requested WebSocket version, empty if missing; nil if the request is not for a WebSocket.
    package var webSocketVersion: String?

    package init(
        _ method: Method,
        _ path: String,
        arguments: [String] = [],
        host: String?,
        origin: String? = nil,
        webSocketVersion: String? = nil
    ) {
        (self.method, self.path, self.arguments) = (method, path, arguments)
        (self.host, self.origin, self.webSocketVersion) = (host, origin, webSocketVersion)
    }
}

/// The action of the server for a request.
package enum ActivationDecision: Sendable, Equatable {
    case answer(HTTPAnswer)
    /// The browser waits for the end of an authentication. TR-03124-1 2.2.1.
    case authenticate(tcTokenURL: String)
    /// The user interface shows its window.
    case showUserInterface(module: String)
    /// The connection becomes a WebSocket.
    case upgrade
}

/// Decides whether a request at the browser port is allowed. docs/protocol/browsers.md.
package struct ActivationRules: Sendable {
    /// The origins whose web pages may open a WebSocket, as browsers write them: `https://example.org`.
    package let origins: Set<String>
    package let identity: ActivationIdentity

    package init(origins: Set<String> = [], identity: ActivationIdentity) {
        (self.origins, self.identity) = (origins, identity)
    }

    package func decide(_ request: ActivationRequest) -> ActivationDecision {
        // A page can make its own domain resolve to this computer (DNS rebinding), but Host still has that domain.
        guard let host = request.host, Self.isLocal(host) else { return .answer(.forbidden(identity)) }
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
        if let origin = request.origin, !origins.contains(origin) { return .answer(.forbidden(identity)) }
        // libwebsockets would answer other versions with version 13. RFC 6455 4.2.2.
        guard version == "13" else { return .answer(.wrongWebSocketVersion(identity)) }
        return .upgrade
    }

    private static func isKernel(_ path: String) -> Bool { path == "/eID-Kernel" || path == "/eID-Kernel/" }

    /// Whether a Host header is `localhost`, 127.0.0.1 or [::1], with or without a port.
    private static func isLocal(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "[::1]"].contains { name in
            guard host.lowercased().hasPrefix(name) else { return false }
            let port = host.utf8.dropFirst(name.utf8.count)
            guard let first = port.first else { return true }
            return first == UInt8(ascii: ":") && UInt16(String(decoding: port.dropFirst(), as: UTF8.self)) != nil
        }
    }
}
