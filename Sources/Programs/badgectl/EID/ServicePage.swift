// SPDX-License-Identifier: GPL-3.0-or-later
import CCurl
import Glibc

/// What the service answers at the address to which the browser returns.
struct ServicePage {
    let status: Int
    /// Without parameters, in lower case.
    let contentType: String
    /// The page as lines of text.
    let text: String

    /// The maximum number of bytes of a page.
    private static let maximumLength = 1 << 20
    private static let maximumHeaders = 1 << 16
    private static let milliseconds = 30_000

    /// Fetches the page as a browser does: follows redirects, keeps cookies until the end, and checks the certificates by
    /// the authorities of the system. The proxies of the environment are used.
    static func fetch(_ url: String) throws -> ServicePage {
        let words = ccurl_load().map { String(cString: $0) }
        guard words == nil, let session = ccurl_session_new() else {
            throw CommandFailure(
                .failed,
                "the page of the service cannot be fetched: \(words ?? "no memory is left")",
                hint: "install libcurl (Debian: apt install libcurl4), or open the address yourself"
            )
        }
        defer { ccurl_session_free(session) }
        let answer = Answer()
        let outcome = url.withCString { url in
            "User-Agent: badgectl\nAccept: text/html, text/plain, application/json".withCString { headers in
                "".withCString { none in
                    var request = ccurl_request(
                        method: CCURL_PAGE,
                        url: url,
                        resolve: none,
                        is_secure: String(cString: url).lowercased().hasPrefix("https://"),
                        headers: headers,
                        body: nil,
                        body_count: 0,
                        trusts_system: true,
                        proxy: none,
                        proxy_name: nil,
                        proxy_password: nil,
                        connect_milliseconds: milliseconds,
                        total_milliseconds: milliseconds,
                        owner: Unmanaged.passUnretained(answer).toOpaque(),
                        prepare_tls: { _, _ in true },
                        connected: { _ in true },
                        header: { Answer.of($0).takeHeader(UnsafeRawBufferPointer(start: $1, count: $2)) },
                        received: { Answer.of($0).takeBody(UnsafeRawBufferPointer(start: $1, count: $2)) },
                        cancelled: { _ in false }
                    )
                    return ccurl_run(session, &request)
                }
            }
        }
        guard outcome.end == CCURL_DONE else {
            let words = withUnsafeBytes(of: outcome.words) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            let reason = answer.isTooLong ? "it is longer than 1 MiB" : words
            throw CommandFailure(
                .failed,
                "the page of the service cannot be fetched: \(reason)",
                hint: "open the address in a browser"
            )
        }
        return answer.page(status: outcome.status)
    }

    private final class Answer {
        private var contentType = ""
        private var headerBytes = 0
        private var body: [UInt8] = []
        private(set) var isTooLong = false

        static func of(_ owner: UnsafeMutableRawPointer) -> Answer {
            Unmanaged<Answer>.fromOpaque(owner).takeUnretainedValue()
        }

        func takeHeader(_ line: UnsafeRawBufferPointer) -> Bool {
            headerBytes += line.count
            let text = String(decoding: line, as: UTF8.self).lowercased()
            // A status line begins the answer of the next redirect.
            if text.hasPrefix("http/") { (contentType, body) = ("", []) }
            if text.hasPrefix("content-type:") { contentType = String(text.dropFirst(13)) }
            isTooLong = headerBytes > ServicePage.maximumHeaders
            return !isTooLong
        }

        func takeBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
            isTooLong = bytes.count > ServicePage.maximumLength - body.count
            if !isTooLong { body.append(contentsOf: bytes) }
            return !isTooLong
        }

        func page(status: Int) -> ServicePage {
            let parts = contentType.split(separator: ";").map { part in
                String(part.filter { !$0.isWhitespace && $0 != "\"" })
            }
            let type = parts.first ?? ""
            let isLatin = parts.dropFirst().contains { ["charset=iso-8859-1", "charset=windows-1252"].contains($0) }
            var text = ""
            if isLatin {
                text.unicodeScalars.append(contentsOf: body.map { Unicode.Scalar($0) })
            } else {
                text = String(decoding: body, as: UTF8.self)
            }
            if type.hasSuffix("html") || type.hasSuffix("xhtml+xml") { text = HTMLText.text(text) }
            if !type.hasPrefix("text/"), !["html", "json", "xml"].contains(where: type.hasSuffix) {
                text = "\(body.count) bytes of \(type.isEmpty ? "an unknown type" : type)"
            }
            return ServicePage(status: status, contentType: type, text: text)
        }
    }
}
