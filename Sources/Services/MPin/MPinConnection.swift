// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
import HTTP
package import Text

/// The requests of one call to M-Pin servers, on a thread of their own.
///
/// A cancelled task ends its request at once. Nothing is sent twice.
package actor MPinConnection {
    private let configuration: MPinConfiguration
    private let headers: [CustomHeader]
    private let domains: TrustedDomains
    /// nil if the system could not start a thread; then every request fails.
    private nonisolated let thread: JobQueue?
    private nonisolated let canceller = HTTPCanceller()
    private let addresses: HostAddresses
    private var session: HTTPSession?

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        thread?.asUnownedSerialExecutor() ?? Loop.sharedUnownedExecutor
    }

    package init(
        _ configuration: MPinConfiguration,
        headers: [CustomHeader],
        domains: TrustedDomains,
        startThread: JobQueue.Start = Concurrency.startThread
    ) {
        (self.configuration, self.headers, self.domains) = (configuration, headers, domains)
        addresses = HostAddresses(configuration.lookUp, canceller)
        thread = JobQueue(thread: "badged-web", start: startThread)
    }

    deinit { thread?.finish() }

    // MARK: Calls

    /// Fetches the settings of a backend.
    package nonisolated func settings(
        of backend: Backend,
        _ flavour: Flavour = .mpin
    ) async throws(Failure) -> ClientSettings {
        try await cancellable { server throws(Failure) in
            let address = try backend.address(backend.settingsAddress)
            return try ServerReply.settings(try server.get(address).body, of: backend, flavour)
        }
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
        _ meaning: Meaning = { _ in nil }
    ) throws(Failure) -> HTTPResponse { try send(.get, address, nil, meaning) }

    /// Sends a request, whose answer must have status 200.
    func send(
        _ method: HTTPRequest.Method,
        _ address: WebAddress,
        _ body: [UInt8]?,
        more lines: [String] = [],
        _ meaning: Meaning = { _ in nil }
    ) throws(Failure) -> HTTPResponse {
        let response = try run(method, address, body, more: lines)
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
        let answer = "\(address.origin.host) answered with HTTP status \(status)"
        throw Failure(
            result,
            "\(answer)\(refusal.map { " and \($0.rawValue)" } ?? ""): \(result.explanation(isBlocked: http == 410))",
            http: http
        )
    }

    func run(
        _ method: HTTPRequest.Method,
        _ address: WebAddress,
        _ body: [UInt8]?,
        more: [String] = []
    ) throws(Failure) -> HTTPResponse {
        guard thread != nil else { throw Failure(.networkError, "no thread is left for the connection") }
        try configuration.domains.check(address)
        try domains.check(address)
        var lines = headers.map { "\($0.name): \($0.value)" } + more
        if !headers.contains(where: { $0.name.lowercased() == "user-agent" }) {
            lines.append("User-Agent: \(configuration.userAgent)")
        }
        if body != nil { lines += ["Content-Type: application/json; charset=UTF-8", "Accept: text/plain"] }
        let request = HTTPRequest(method: method, address: address, headers: lines, body: body ?? [])
        var refusal: Failure?
        do throws(HTTPFault) {
            refusal = try privateServer(address)
            if refusal == nil { return try connected().run(request, by: .now + configuration.limits.transfer) }
        } catch {
            let status = error == .tooLarge ? MPinStatus.responseParseError : .networkError
            throw Failure(status, error.text(address.origin.host))
        }
        throw refusal ?? Failure(.networkError, "no request was sent")
    }

    /// Refuses a server on this computer or in a private network, also one whose name leads there. A client could make
    /// badged send requests to services that trust this computer.
    private func privateServer(_ address: WebAddress) throws(HTTPFault) -> Failure? {
        guard !configuration.allowsPrivateServers else { return nil }
        let host = address.origin.host
        var isPrivate = address.origin.isThisComputer || PrivateAddress.isPrivate(host)
        // A proxy looks up the name itself. HTTPSession uses the addresses that are found here.
        if !isPrivate, configuration.proxies?.proxy(for: address.origin) == nil {
            isPrivate = try addresses.find(host, by: .now + configuration.limits.connect)
                .contains(where: PrivateAddress.isPrivate)
        }
        guard isPrivate else { return nil }
        return Failure(
            .untrustedDomain,
            "\(host) is on this computer or in a private network: to allow it, set private_servers = yes in [mpin] of"
                + " badged.conf, and restart badged"
        )
    }

    private func connected() throws(HTTPFault) -> HTTPSession {
        if let session { return session }
        let new = try HTTPSession(nil, configuration.limits, configuration.proxies, canceller, addresses)
        session = new
        return new
    }

    // MARK: Cancellation

    typealias Call<T> = @Sendable (isolated MPinConnection) throws(Failure) -> T

    /// Runs one call on the actor's thread; the cancellation of the task ends its request.
    nonisolated func cancellable<T: Sendable>(_ call: Call<T>) async throws(Failure) -> T {
        let result = await withTaskCancellationHandler {
            await run(call)
        } onCancel: {
            canceller.cancel()
        }
        return try result.get()
    }

    private func run<T: Sendable>(_ call: Call<T>) -> Result<T, Failure> {
        Result { () throws(Failure) in try call(self) }
    }
}
