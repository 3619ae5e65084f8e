// SPDX-License-Identifier: GPL-3.0-or-later

/// A request at the browser's door, as far as it decides about the answer.
package struct ActivationRequest: Sendable, Equatable {
    package enum Method: Sendable, Equatable { case get, head, options, other }

    package var method: Method
    package var path: String
    /// `key=value` or `key`, decoded, in their order.
    package var arguments: [String]
    package var host: String?
    /// Only web pages send one.
    package var origin: String?
    /// What it says of the WebSocket that it wants to be, empty when nothing; nil: it wants to be none.
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

/// What comes of it.
package enum ActivationDecision: Sendable, Equatable {
    case answer(HTTPAnswer)
    /// The browser waits for the end of an authentication. TR-03124-1 2.2.1.
    case authenticate(tcTokenURL: String)
    /// The user's program is asked to show itself.
    case showUserInterface(module: String)
    /// It becomes a WebSocket.
    case upgrade
}

/// Who may do what at the door. docs/protocol.md, Browsers and WebSockets.
package struct ActivationRules: Sendable {
    /// Whose web pages may open a WebSocket, as their browsers write it: `https://example.org`.
    package let origins: Set<String>
    package let identity: ActivationIdentity

    package init(origins: Set<String> = [], identity: ActivationIdentity) {
        (self.origins, self.identity) = (origins, identity)
    }

    package func decide(_ request: ActivationRequest) -> ActivationDecision {
        // A page of somebody else whose name was made to lead to this computer keeps its name in Host.
        guard let host = request.host, Self.isLocal(host) else { return .answer(.forbidden(identity)) }
        if let version = request.webSocketVersion { return webSocket(request, version) }
        guard request.path == "/eID-Client" else {
            // What a WebSocket alone can reach says so, as the peer does.
            return .answer(Self.isKernel(request.path) ? .upgradeRequired(identity) : .notFound(identity))
        }
        switch request.method {
        case .options, .head: return .answer(.preflight(identity))
        case .other: return .answer(.notFound(identity))
        case .get: return client(request)
        }
    }

    /// The first argument that is known counts, whatever the case of its letters.
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
        // The library would speak version 13 to whoever asks for another. RFC 6455 4.2.2.
        guard version == "13" else { return .answer(.otherWebSocket(identity)) }
        return .upgrade
    }

    private static func isKernel(_ path: String) -> Bool { path == "/eID-Kernel" || path == "/eID-Kernel/" }

    /// `localhost`, 127.0.0.1 or [::1], with or without a port.
    private static func isLocal(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "[::1]"].contains { name in
            guard host.lowercased().hasPrefix(name) else { return false }
            let rest = host.utf8.dropFirst(name.utf8.count)
            guard let first = rest.first else { return true }
            return first == UInt8(ascii: ":") && UInt16(String(decoding: rest.dropFirst(), as: UTF8.self)) != nil
        }
    }
}
