// SPDX-License-Identifier: GPL-3.0-or-later
import CCurl
import HTTP
import Text

/// The connections to one server, over libcurl. No other file calls libcurl.
final class CurlSession {
    /// The maximum number of bytes of all header lines of an answer.
    private static let maximumHeaders = 64 * 1024

    private let tls: ServiceGuard?
    /// Certificates in PEM.
    private let authorities: [UInt8]?
    private let session: OpaquePointer
    /// When this descriptor can be read, `mayGoOn` says whether the transfer goes on.
    private let stop: Int32
    private let mayGoOn: () -> Bool

    // The state of the running transfer.
    private var method = HTTPRequest.Method.get
    private var attempts = 0
    private var maximumLength = 0
    private var isTooLarge = false
    private var refusesPrivateServers = false
    private var hasMetPrivateServer = false
    private var lines: [[UInt8]] = []
    private var headerBytes = 0
    private var body: [UInt8] = []

    /// Makes a session without connections; nil if no memory is left. Without a guard, libcurl verifies certificates: by
    /// `authorities` in PEM, or by the authorities of the system.
    init?(_ tls: ServiceGuard?, authorities: [UInt8]? = nil, stop: Int32, mayGoOn: @escaping () -> Bool) {
        guard let session = ccurl_session_new() else { return nil }
        self.tls = tls
        self.authorities = authorities
        self.session = session
        self.stop = stop
        self.mayGoOn = mayGoOn
    }

    deinit { ccurl_session_free(session) }

    /// Runs one transfer to its end.
    func run(_ transfer: NetworkRequest.Transfer) throws(HTTPFault) -> HTTPResponse {
        let request = transfer.request
        tls?.reset(host: request.address.origin.host)
        method = request.method
        maximumLength = request.maximumLength
        refusesPrivateServers = request.refusesPrivateServers
        hasMetPrivateServer = false
        attempts = 0
        isTooLarge = false
        lines = []
        headerBytes = 0
        body = []
        defer { (lines, body) = ([], []) }
        let outcome = perform(transfer)
        let words = withUnsafeBytes(of: outcome.words) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if hasMetPrivateServer { throw .privateServer }
        if let fault = tls?.fault { throw .tls(fault, words) }
        if isTooLarge { throw .tooLarge }
        switch outcome.end {
        case CCURL_DONE: break
        // Only `maySend` proves that there was a handshake: libcurl is refused also when TLS cannot be prepared.
        case CCURL_REFUSED where method == .connect && attempts > 0: return HTTPResponse(status: 100)
        case CCURL_CANCELLED: throw .cancelled
        case CCURL_TIMEOUT: throw .timeout
        // libcurl tries again when a connection that was used before breaks. The server may have acted on the request. A
        // page has no such effect, and its redirects are attempts as well.
        case _ where attempts > 0 && method != .page:
            throw .broken(attempts > 1 ? "the server dropped the connection" : words)
        case CCURL_PROXY:
            let fault = ProxyFault(
                status: outcome.proxy_status,
                offersOtherMethods: outcome.proxy_offers_other_logins,
                hasCredentials: transfer.proxy?.credentials != nil
            )
            throw .proxy(fault, words)
        case CCURL_UNREACHABLE: throw .unreachable(words)
        case CCURL_TLS: throw .tls(nil, words)
        default: throw .broken(words)
        }
        guard (100...999).contains(outcome.status) else { throw .broken("no HTTP status") }
        return HTTPResponse(status: outcome.status, headers: headers, body: body)
    }

    private func perform(_ transfer: NetworkRequest.Transfer) -> ccurl_outcome {
        guard let credentials = transfer.proxy?.credentials else { return perform(transfer, nil, nil) }
        return credentials.withStrings { perform(transfer, $0, $1) }
    }

    private func perform(
        _ transfer: NetworkRequest.Transfer,
        _ name: UnsafePointer<CChar>?,
        _ password: UnsafePointer<CChar>?
    ) -> ccurl_outcome {
        let request = transfer.request
        let method =
            switch request.method {
            case .get: CCURL_GET
            case .post: CCURL_POST
            case .put: CCURL_PUT
            case .connect: CCURL_CONNECT
            case .page: CCURL_PAGE
            }
        // An empty Expect header: otherwise libcurl would wait for 100 Continue before it sends a long body.
        let headers = (request.headers + ["Expect:"]).joined(separator: "\n")
        let owner = Unmanaged.passUnretained(self).toOpaque()
        return Self.withCStrings([request.address.text, headers, transfer.proxy?.address ?? ""]) { texts in
            withBytes(request.body, authorities ?? []) { body, authorities in
                var call = ccurl_request(
                    method: method,
                    url: texts[0],
                    is_secure: request.address.isSecure,
                    headers: texts[1],
                    body: body.baseAddress,
                    body_count: body.count,
                    verifies: tls == nil,
                    authorities: authorities.baseAddress,
                    authorities_count: authorities.count,
                    proxy: texts[2],
                    proxy_name: name,
                    proxy_password: password,
                    connect_milliseconds: Int(transfer.connectMilliseconds),
                    total_milliseconds: Int(transfer.totalMilliseconds),
                    stop: stop,
                    owner: owner,
                    may_go_on: { CurlSession.of($0).mayGoOn() },
                    prepare_tls: { CurlSession.of($0).tls?.prepare(OpaquePointer($1)) ?? true },
                    may_connect: { CurlSession.of($0).mayConnect(String(cString: $1)) },
                    connected: { CurlSession.of($0).maySend() },
                    header: { CurlSession.of($0).receiveHeader($1, $2) },
                    received: { CurlSession.of($0).receiveBody($1, $2) }
                )
                return ccurl_run(session, &call)
            }
        }
    }

    private func withBytes<R>(
        _ first: [UInt8],
        _ second: [UInt8],
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> R
    ) -> R {
        first.withUnsafeBytes { first in second.withUnsafeBytes { body(first, $0) } }
    }

    /// Lends C strings, in the order of the texts.
    private static func withCStrings<R>(_ texts: [String], _ body: ([UnsafePointer<CChar>]) -> R) -> R {
        func lend(_ lent: [UnsafePointer<CChar>]) -> R {
            lent.count == texts.count ? body(lent) : texts[lent.count].withCString { lend(lent + [$0]) }
        }
        return lend([])
    }

    private static func of(_ owner: UnsafeMutableRawPointer) -> CurlSession {
        Unmanaged<CurlSession>.fromOpaque(owner).takeUnretainedValue()
    }

    /// Whether this address of the server may be reached.
    private func mayConnect(_ address: String) -> Bool {
        guard refusesPrivateServers, PrivateAddress.isPrivate(address) else { return true }
        hasMetPrivateServer = true
        return false
    }

    /// libcurl sends a request again when the server drops a connection that was used before. A message that changes
    /// something must not be sent again: the server may have acted on the first.
    private func maySend() -> Bool {
        attempts += 1
        guard tls?.fault == nil else { return false }
        return switch method {
        case .get, .page: true
        case .post, .put: attempts == 1
        case .connect: false
        }
    }

    private func receiveHeader(_ bytes: UnsafePointer<CChar>, _ count: Int) -> Bool {
        headerBytes += count
        guard headerBytes <= Self.maximumHeaders, lines.count < NetworkMessage.maximumHeaders else {
            isTooLarge = true
            return false
        }
        let line = UnsafeRawBufferPointer(start: bytes, count: count)
        // A status line begins an answer; interim answers before the last one do not count.
        if line.starts(with: "HTTP/".utf8) { (lines, body) = ([], []) }
        lines.append(Array(line))
        return true
    }

    private func receiveBody(_ bytes: UnsafeRawPointer, _ count: Int) -> Bool {
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
            return (
                String(decoding: line[..<colon], as: UTF8.self).lowercased(),
                String(decoding: line[(colon + 1)...].trimmed { $0 <= 0x20 }, as: UTF8.self)
            )
        }
    }
}
