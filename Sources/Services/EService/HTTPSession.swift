// SPDX-License-Identifier: GPL-3.0-or-later
import CCurl
import Synchronization

/// A request. Redirects are answers like any other.
struct HTTPRequest {
    enum Method: String {
        case get = "GET"
        case post = "POST"
        /// Ends when the connection stands: nothing is sent.
        case connect = "HEAD"
    }

    var method = Method.get
    let address: WebAddress
    var headers: [String] = []
    var body: [UInt8] = []
    /// Bytes of the answer.
    var maximumLength = 64 * 1024
}

struct HTTPResponse: Equatable {
    /// 100 to 999.
    let status: Int
    /// Names in lower case, of the last answer.
    let headers: [(name: String, value: String)]
    let body: [UInt8]

    /// The value of a header; nil when it is not there, or there twice.
    func header(_ name: String) -> String? {
        let found = headers.filter { $0.name == name }
        return found.count == 1 ? found[0].value : nil
    }

    static func == (a: HTTPResponse, b: HTTPResponse) -> Bool {
        a.status == b.status && a.body == b.body && a.headers.elementsEqual(b.headers, by: ==)
    }
}

/// Why there is no answer.
enum HTTPFault: Error, Equatable {
    case cancelled
    case timeout
    case unreachable(String)
    /// The handshake failed: by libssl (nil), or by our rules.
    case tls(TLSFault?, String)
    /// An answer of more bytes than it may have.
    case tooLarge
    /// Cut off, or no HTTP.
    case broken(String)
    /// libcurl cannot be loaded.
    case unavailable(String)
}

/// Connections of one phase of an authentication, over libcurl. The only file that knows it.
///
/// Belongs to one thread; `cancel` may come from any.
final class HTTPSession {
    /// Bytes of all header lines of an answer.
    static let maximumHeaders = 64 * 1024

    let tls: TLSGuard
    let stopwatch: Stopwatch
    private let memory: TLSMemory?
    private let canceller: HTTPCanceller
    private let session: OpaquePointer
    private let limits: EServiceConfiguration.Limits

    /// Of the transfer that runs.
    private var isOnlyConnecting = false
    private var attempts = 0
    private var maximumLength = 0
    private var isTooLarge = false
    private var lines: [[UInt8]] = []
    private var headerBytes = 0
    private var body: [UInt8] = []

    /// Without a `memory` no other session resumes what this one began.
    init(
        _ tls: TLSGuard,
        _ limits: EServiceConfiguration.Limits,
        _ canceller: HTTPCanceller,
        _ memory: TLSMemory?,
        _ stopwatch: Stopwatch
    ) throws(HTTPFault) {
        try Self.load()
        guard let session = ccurl_session_new(memory?.pointer) else {
            throw .unavailable("libcurl has no session left")
        }
        (self.tls, self.session, self.limits, self.canceller) = (tls, session, limits, canceller)
        (self.memory, self.stopwatch) = (memory, stopwatch)
        canceller.use(session)
    }

    /// Loads libcurl, once for the process.
    static func load() throws(HTTPFault) {
        if let words = ccurl_load() { throw .unavailable(String(cString: words)) }
    }

    deinit {
        canceller.forget(session)
        ccurl_session_free(session)
    }

    /// Runs one transfer, on this thread. The `deadline` is that of the phase; a transfer has its own limit as well.
    func run(_ request: HTTPRequest, by deadline: ContinuousClock.Instant) throws(HTTPFault) -> HTTPResponse {
        let total = min(limits.transfer, ContinuousClock.now.duration(to: deadline)).milliseconds
        guard total > 0 else { throw .timeout }
        tls.reset(host: request.address.origin.host)
        isOnlyConnecting = request.method == .connect
        maximumLength = request.maximumLength
        (attempts, isTooLarge, lines, headerBytes, body) = (0, false, [], 0, [])
        defer { (lines, body) = ([], []) }
        let begin = ContinuousClock.now
        let outcome = perform(request, total)
        let answer = isOnlyConnecting ? .zero : Duration.microseconds(outcome.answer_microseconds)
        stopwatch.add(transfer: begin.duration(to: .now), answer: answer)
        let words = withUnsafeBytes(of: outcome.words) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if let fault = tls.fault { throw .tls(fault, words) }
        if isTooLarge { throw .tooLarge }
        switch outcome.end {
        case CCURL_DONE: break
        case CCURL_REFUSED where isOnlyConnecting: return HTTPResponse(status: 100, headers: [], body: [])
        case CCURL_CANCELLED: throw .cancelled
        case CCURL_TIMEOUT: throw .timeout
        case CCURL_UNREACHABLE: throw .unreachable(words)
        case CCURL_TLS: throw .tls(nil, words)
        case CCURL_REFUSED where attempts > 1: throw .broken("the server dropped the connection")
        default: throw .broken(words)
        }
        guard (100...999).contains(outcome.status) else { throw .broken("no HTTP status") }
        return HTTPResponse(status: outcome.status, headers: headers, body: body)
    }

    private func perform(_ request: HTTPRequest, _ total: Int) -> ccurl_outcome {
        let lines = (request.headers + ["Expect:"]).map { Array($0.utf8CString) }
        let pointers = UnsafeMutablePointer<UnsafePointer<CChar>?>.allocate(capacity: lines.count + 1)
        let copies = lines.map { line in
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: line.count)
            copy.initialize(from: line, count: line.count)
            return copy
        }
        for (index, copy) in copies.enumerated() { pointers[index] = UnsafePointer(copy) }
        pointers[lines.count] = nil
        defer {
            for copy in copies { copy.deallocate() }
            pointers.deallocate()
        }
        let owner = Unmanaged.passUnretained(self).toOpaque()
        return request.method.rawValue.withCString { method in
            request.address.text.withCString { url in
                (request.address.isSecure ? "https" : "http").withCString { schemes in
                    request.body.withUnsafeBytes { body in
                        var call = ccurl_request(
                            method: method,
                            url: url,
                            schemes: schemes,
                            headers: UnsafePointer(pointers),
                            body: body.baseAddress,
                            body_count: body.count,
                            connect_milliseconds: limits.connect.milliseconds,
                            total_milliseconds: total,
                            owner: owner,
                            prepare_tls: { HTTPSession.of($0).tls.prepare(OpaquePointer($1)) },
                            connected: { HTTPSession.of($0).mayGoOn() },
                            header: { HTTPSession.of($0).takeHeader($1, $2) },
                            received: { HTTPSession.of($0).takeBody($1, $2) },
                            cancelled: { HTTPSession.of($0).canceller.isCancelled }
                        )
                        return ccurl_run(session, &call)
                    }
                }
            }
        }
    }

    private static func of(_ owner: UnsafeMutableRawPointer) -> HTTPSession {
        Unmanaged<HTTPSession>.fromOpaque(owner).takeUnretainedValue()
    }

    /// libcurl would send a request again when the server drops a connection that was used before. A message of the
    /// protocol is sent once: nobody knows what the server made of the first.
    private func mayGoOn() -> Bool {
        attempts += 1
        return tls.fault == nil && !isOnlyConnecting && attempts == 1
    }

    private func takeHeader(_ bytes: UnsafePointer<CChar>, _ count: Int) -> Bool {
        headerBytes += count
        guard headerBytes <= Self.maximumHeaders else {
            isTooLarge = true
            return false
        }
        let line = UnsafeRawBufferPointer(start: bytes, count: count)
        // The status line of an answer behind an interim one: only the last counts.
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
    /// Whole ones.
    fileprivate var milliseconds: Int {
        Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}
