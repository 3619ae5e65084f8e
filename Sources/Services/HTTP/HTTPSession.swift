// SPDX-License-Identifier: GPL-3.0-or-later
import CCurl

/// A request. Redirects are answers like any other.
package struct HTTPRequest: Sendable {
    package enum Method: Sendable {
        case get, post, put
        /// Connects, so that the certificate is checked, and sends nothing.
        case connect
    }

    package var method: Method
    package let address: WebAddress
    package var headers: [String]
    package var body: [UInt8]
    /// The maximum length of the answer's body in bytes.
    package var maximumLength: Int

    package init(
        method: Method = .get,
        address: WebAddress,
        headers: [String] = [],
        body: [UInt8] = [],
        maximumLength: Int = 64 * 1024
    ) {
        (self.method, self.address, self.headers) = (method, address, headers)
        (self.body, self.maximumLength) = (body, maximumLength)
    }

    /// A POST of JSON to a server that answers JSON. `maximumLength` is the maximum number of bytes of the answer.
    package static func post(
        _ json: [UInt8],
        to address: WebAddress,
        userAgent: String,
        maximumLength: Int
    ) -> HTTPRequest {
        HTTPRequest(
            method: .post,
            address: address,
            headers: ["Content-Type: application/json", "Accept: application/json", "User-Agent: \(userAgent)"],
            body: json,
            maximumLength: maximumLength
        )
    }
}

package struct HTTPResponse: Sendable, Equatable {
    /// 100 to 999.
    package let status: Int
    /// Of the last answer; names in lower case.
    package let headers: [(name: String, value: String)]
    package let body: [UInt8]

    /// The value of a header; nil when the header is missing or repeated.
    package func header(_ name: String) -> String? {
        let found = headers.filter { $0.name == name }
        return found.count == 1 ? found[0].value : nil
    }

    package static func == (a: HTTPResponse, b: HTTPResponse) -> Bool {
        a.status == b.status && a.body == b.body && a.headers.elementsEqual(b.headers, by: ==)
    }
}

/// Why there is no answer.
package enum HTTPFault: Error, Equatable {
    case cancelled
    case timeout
    case unreachable(String)
    /// There is no tunnel through the proxy.
    case proxy(ProxyFault, String)
    /// The handshake failed: by a rule of `TLSRules`, or by libssl and libcurl (nil).
    case tls(TLSFault?, String)
    /// The answer exceeds a limit of its length.
    case tooLarge
    /// The connection was lost, or the answer is not HTTP.
    case broken(String)
    /// libcurl cannot be loaded.
    case unavailable(String)

    /// Says why there is no answer, and what to do where that is known. `server` names it in the sentence.
    package func text(_ server: String) -> String {
        switch self {
        case .cancelled: "the request was cancelled"
        case .timeout: "\(server) did not answer in time"
        case .unreachable(let words): "\(server) cannot be reached: \(words)"
        case .proxy(.unreachable, let words): "the proxy cannot be reached: \(words)"
        case .proxy(.credentials, _): "the proxy refused the credentials"
        case .proxy(.refused(let status), _): "the proxy refused to connect to \(server): HTTP \(status)"
        case .tls(let fault, let words): "\(server) cannot be trusted: \(fault?.text ?? words)"
        case .tooLarge: "the answer of \(server) is too long"
        case .broken(let words): "\(server) gave no complete answer: \(words)"
        case .unavailable(let words): words
        }
    }
}

/// The timeouts of one transfer.
package struct HTTPLimits: Sendable, Equatable {
    /// For connecting, with the TLS handshake.
    package var connect: Duration
    /// For one request and its answer.
    package var transfer: Duration

    package init(connect: Duration = .seconds(10), transfer: Duration = .seconds(30)) {
        (self.connect, self.transfer) = (connect, transfer)
    }
}

/// The connections to one server, over libcurl. No other file calls libcurl.
///
/// All calls come from one thread; a transfer is cancelled through the canceller.
package final class HTTPSession {
    /// The maximum number of bytes of all header lines of an answer.
    static let maximumHeaders = 64 * 1024

    private let tls: (any TLSRules)?
    private let canceller: HTTPCanceller
    private let addresses: HostAddresses
    private let session: OpaquePointer
    private let limits: HTTPLimits
    private let proxies: ProxySettings?

    // The state of the running transfer.
    private var method = HTTPRequest.Method.get
    private var attempts = 0
    private var maximumLength = 0
    private var isTooLarge = false
    private var lines: [[UInt8]] = []
    private var headerBytes = 0
    private var body: [UInt8] = []

    /// Makes a session without connections. Without TLS rules, libcurl verifies certificates with the authorities of
    /// the system.
    package init(
        _ tls: (any TLSRules)?,
        _ limits: HTTPLimits,
        _ proxies: ProxySettings?,
        _ canceller: HTTPCanceller,
        _ addresses: HostAddresses
    ) throws(HTTPFault) {
        if let words = Self.libraryFault { throw .unavailable(words) }
        guard let session = ccurl_session_new() else { throw .unavailable("libcurl has no session left") }
        (self.tls, self.session) = (tls, session)
        (self.limits, self.proxies) = (limits, proxies)
        (self.canceller, self.addresses) = (canceller, addresses)
        canceller.add(session)
    }

    /// Says why libcurl cannot be used, or nil. A library that lies where it belongs is not loaded for this.
    package static var installationFault: String? { ccurl_is_in_library_folders() ? nil : libraryFault }

    /// Loads libcurl; says why it cannot be used, or nil.
    package static var libraryFault: String? {
        ccurl_load().map { "libcurl (Debian package libcurl4) cannot be used: \(String(cString: $0))" }
    }

    deinit {
        canceller.remove(session)
        ccurl_session_free(session)
    }

    /// Runs one transfer on this thread. The transfer ends at `deadline`, or earlier by its own limit.
    package func run(_ request: HTTPRequest, by deadline: ContinuousClock.Instant) throws(HTTPFault) -> HTTPResponse {
        let origin = request.address.origin
        let begin = ContinuousClock.now
        let end = min(begin + limits.transfer, deadline)
        guard begin < end else { throw .timeout }
        let proxy = proxies?.proxy(for: origin)
        // With a proxy, only the address of the proxy is needed: the proxy looks up the name of the server.
        let peer = proxy?.origin ?? origin
        let found = try find(peer.host, isProxy: proxy != nil, by: min(end, begin + limits.connect))
        let total = ContinuousClock.now.duration(to: end).milliseconds
        guard total > 0 else { throw .timeout }
        tls?.reset(host: origin.host)
        (method, maximumLength) = (request.method, request.maximumLength)
        (attempts, isTooLarge, lines, headerBytes, body) = (0, false, [], 0, [])
        defer { (lines, body) = ([], []) }
        // With these addresses libcurl makes no look-ups of its own, which could not be abandoned.
        let resolve = found.isEmpty ? "" : "\(peer.host):\(peer.port):\(found.joined(separator: ","))"
        let outcome = perform(request, total, resolve, proxy)
        let words = withUnsafeBytes(of: outcome.words) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if let fault = tls?.fault { throw .tls(fault, words) }
        if isTooLarge { throw .tooLarge }
        switch outcome.end {
        case CCURL_DONE: break
        case CCURL_REFUSED where method == .connect: return HTTPResponse(status: 100, headers: [], body: [])
        case CCURL_CANCELLED: throw .cancelled
        case CCURL_TIMEOUT: throw .timeout
        case CCURL_PROXY: throw .proxy(ProxyFault(status: outcome.proxy_status), words)
        case CCURL_UNREACHABLE: throw .unreachable(words)
        case CCURL_TLS: throw .tls(nil, words)
        case CCURL_REFUSED where attempts > 1: throw .broken("the server dropped the connection")
        default: throw .broken(words)
        }
        guard (100...999).contains(outcome.status) else { throw .broken("no HTTP status") }
        return HTTPResponse(status: outcome.status, headers: headers, body: body)
    }

    private func find(
        _ host: String,
        isProxy: Bool,
        by deadline: ContinuousClock.Instant
    ) throws(HTTPFault) -> [String] {
        do throws(HTTPFault) {
            return try addresses.find(host, by: deadline)
        } catch {
            guard isProxy else { throw error }
            switch error {
            case .timeout: throw .proxy(.unreachable, "the name of the proxy was not found in time")
            case .unreachable(let words): throw .proxy(.unreachable, words)
            default: throw error
            }
        }
    }

    private func perform(
        _ request: HTTPRequest,
        _ total: Int,
        _ resolve: String,
        _ proxy: Proxy?
    ) -> ccurl_outcome {
        let method =
            switch request.method {
            case .get: CCURL_GET
            case .post: CCURL_POST
            case .put: CCURL_PUT
            case .connect: CCURL_CONNECT
            }
        // An empty Expect header: otherwise libcurl would wait for 100 Continue before it sends a long body.
        let headers = (request.headers + ["Expect:"]).joined(separator: "\n")
        guard let credentials = proxy?.credentials else {
            return perform(request, total, resolve, method, headers, proxy, nil, nil)
        }
        return credentials.withStrings { perform(request, total, resolve, method, headers, proxy, $0, $1) }
    }

    private func perform(
        _ request: HTTPRequest,
        _ total: Int,
        _ resolve: String,
        _ method: ccurl_method,
        _ headers: String,
        _ proxy: Proxy?,
        _ name: UnsafePointer<CChar>?,
        _ password: UnsafePointer<CChar>?
    ) -> ccurl_outcome {
        let owner = Unmanaged.passUnretained(self).toOpaque()
        let texts = [request.address.text, headers, resolve, proxy?.address ?? ""]
        return Self.withCStrings(texts) { texts in
            request.body.withUnsafeBytes { body in
                var call = ccurl_request(
                    method: method,
                    url: texts[0],
                    resolve: texts[2],
                    is_secure: request.address.isSecure,
                    headers: texts[1],
                    body: body.baseAddress,
                    body_count: body.count,
                    trusts_system: tls == nil,
                    proxy: texts[3],
                    proxy_name: name,
                    proxy_password: password,
                    connect_milliseconds: limits.connect.milliseconds,
                    total_milliseconds: total,
                    owner: owner,
                    prepare_tls: { HTTPSession.of($0).tls?.prepare(OpaquePointer($1)) ?? true },
                    connected: { HTTPSession.of($0).maySend() },
                    header: { HTTPSession.of($0).takeHeader($1, $2) },
                    received: { HTTPSession.of($0).takeBody($1, $2) },
                    cancelled: { HTTPSession.of($0).canceller.isCancelled }
                )
                return ccurl_run(session, &call)
            }
        }
    }

    /// Lends C strings, in the order of the texts.
    private static func withCStrings<R>(_ texts: [String], _ body: ([UnsafePointer<CChar>]) -> R) -> R {
        func lend(_ lent: [UnsafePointer<CChar>]) -> R {
            lent.count == texts.count ? body(lent) : texts[lent.count].withCString { lend(lent + [$0]) }
        }
        return lend([])
    }

    private static func of(_ owner: UnsafeMutableRawPointer) -> HTTPSession {
        Unmanaged<HTTPSession>.fromOpaque(owner).takeUnretainedValue()
    }

    /// libcurl sends a request again when the server drops a connection that was used before. A message that changes
    /// something must not be sent again: the server may have acted on the first.
    private func maySend() -> Bool {
        attempts += 1
        guard tls?.fault == nil else { return false }
        return switch method {
        case .get: true
        case .post, .put: attempts == 1
        case .connect: false
        }
    }

    private func takeHeader(_ bytes: UnsafePointer<CChar>, _ count: Int) -> Bool {
        headerBytes += count
        guard headerBytes <= Self.maximumHeaders else {
            isTooLarge = true
            return false
        }
        let line = UnsafeRawBufferPointer(start: bytes, count: count)
        // A status line begins an answer; interim answers before the last one do not count.
        if line.starts(with: "HTTP/".utf8) { lines = [] }
        lines.append(Array(line))
        return true
    }

    private func takeBody(_ bytes: UnsafeRawPointer, _ count: Int) -> Bool {
        guard count <= maximumLength - body.count else {
            isTooLarge = true
            return false
        }
        body.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count))
        return true
    }

    private var headers: [(name: String, value: String)] {
        lines.compactMap { line in
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            let value = line[(colon + 1)...].drop { $0 <= 0x20 }
            return (
                String(decoding: line[..<colon], as: UTF8.self).lowercased(),
                String(decoding: value.prefix(value.reversed().drop { $0 <= 0x20 }.count), as: UTF8.self)
            )
        }
    }
}

extension Duration {
    /// Whole milliseconds.
    fileprivate var milliseconds: Int {
        Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}
