// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
package import Text

/// The requests of one call to M-Pin servers.
///
/// A cancelled task ends its request at once. Nothing is sent twice.
package actor MPinConnection {
    private let configuration: MPinConfiguration
    private let headers: [CustomHeader]
    private let domains: TrustedDomains
    private let session: HTTPSession

    package init(_ configuration: MPinConfiguration, headers: [CustomHeader], domains: TrustedDomains) {
        self.configuration = configuration
        self.headers = headers
        self.domains = domains
        session = HTTPSession(configuration.network, .system, configuration.limits)
    }

    // MARK: Calls

    /// Fetches the settings of a backend.
    package func settings(
        of backend: Backend,
        _ flavour: Flavour = .mpin
    ) async throws(Failure) -> ClientSettings {
        let address = try backend.address(backend.settingsAddress)
        return try ServerReply.settings(try await get(address).body, of: backend, flavour)
    }

    // MARK: Parts of calls

    /// Percent-encodes everything but the unreserved characters of RFC 3986.
    static func percentEncoded(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                String(UnicodeScalar(byte))
            default: "%" + Hex.encode([byte]).uppercased()
            }
        }.joined()
    }

    // MARK: Requests

    /// Maps an HTTP status to the status of a call; nil: the general rule applies.
    typealias Meaning = (Int) -> MPinStatus?

    func get(
        _ address: WebAddress,
        isApart: Bool = false,
        _ meaning: Meaning = { _ in nil }
    ) async throws(Failure) -> HTTPResponse { try await send(.get, address, nil, isApart: isApart, meaning) }

    /// Sends a request, whose answer must have status 200. `isApart`: through a run of badged-network of its own.
    func send(
        _ method: HTTPRequest.Method,
        _ address: WebAddress,
        _ body: [UInt8]?,
        more lines: [String] = [],
        isApart: Bool = false,
        _ meaning: Meaning = { _ in nil }
    ) async throws(Failure) -> HTTPResponse {
        let response = try await run(method, address, body, more: lines, isApart: isApart)
        let status = response.status
        guard status != 200 else { return response }
        let general: MPinStatus =
            switch status {
            case 406: .badUserAgent
            case 400...499: .httpRequestError
            case 500...599: .httpServerError
            case 201...299: .responseParseError
            default: .networkError
            }
        let refusal = ServerRefusal(body: response.body)
        let (result, http) = (refusal?.status ?? meaning(status) ?? general, refusal == .revoked ? 410 : status)
        let host = address.origin.host
        let answer: Phrase =
            if let refusal {
                "\(host) answered with HTTP status \(status) and \(refusal.rawValue)"
            } else {
                "\(host) answered with HTTP status \(status)"
            }
        throw Failure(result, "\(answer): \(result.explanation(isBlocked: http == 410))", http: http)
    }

    func run(
        _ method: HTTPRequest.Method,
        _ address: WebAddress,
        _ body: [UInt8]?,
        more: [String] = [],
        isApart: Bool = false
    ) async throws(Failure) -> HTTPResponse {
        try configuration.domains.check(address)
        try domains.check(address)
        var lines = headers.map { "\($0.name): \($0.value)" } + more
        if !headers.contains(where: { $0.name.lowercased() == "user-agent" }) {
            lines.append("User-Agent: \(configuration.userAgent)")
        }
        if body != nil { lines += ["Content-Type: application/json; charset=UTF-8", "Accept: text/plain"] }
        var request = HTTPRequest(method: method, address: address, headers: lines, body: body ?? [])
        // A client could make badged send requests to services that trust this computer.
        request.refusesPrivateServers = !configuration.allowsPrivateServers
        do throws(HTTPFault) {
            guard !request.refusesPrivateServers || !address.origin.isPrivate else { throw .privateServer }
            // Whoever has both shares of a secret has the secret. So the second one comes through a run of its own.
            let session = isApart ? HTTPSession(configuration.network, .system, configuration.limits) : session
            return try await session.run(request)
        } catch {
            let host = address.origin.host
            guard error != .privateServer else {
                throw Failure(
                    .untrustedDomain,
                    "\(host) is on this computer or in a private network: to allow it, set private_servers = yes in"
                        + " [mpin] of badged.conf, and restart badged"
                )
            }
            throw Failure(error == .tooLarge ? .responseParseError : .networkError, error.text(Phrase(verbatim: host)))
        }
    }
}
