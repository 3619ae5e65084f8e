// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A request. Redirects are answers like any other.
package struct HTTPRequest: Sendable {
    package enum Method: UInt8, Sendable, MessageField {
        case get, post, put
        /// Connects, so that the certificate is checked, and sends nothing.
        case connect
        /// GET as a browser does it: redirects are followed with cookies, and the proxies of the environment are used.
        case page
    }

    package var method: Method
    package let address: WebAddress
    package var headers: [String]
    package var body: [UInt8]
    /// The maximum length of the answer's body in bytes.
    package var maximumLength: Int
    /// Whether an answer with status 200 is an XML document, which badged-network reads.
    package var readsDocument = false
    /// Whether a server on this computer or in a private network is refused, also one whose name leads there.
    package var refusesPrivateServers = false

    package init(
        method: Method = .get,
        address: WebAddress,
        headers: [String] = [],
        body: [UInt8] = [],
        maximumLength: Int = 64 * 1024
    ) {
        self.method = method
        self.address = address
        self.headers = headers
        self.body = body
        self.maximumLength = maximumLength
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
    package private(set) var body: [UInt8]
    /// The document instead of the body, if the request asked for it and there is one.
    package var document: Result<XMLElement, Malformed>?

    package init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Takes the body of an answer with a secret. In this answer it is wiped.
    package mutating func takeSecret() -> Secret {
        defer { body.wipe() }
        return Secret(body)
    }

    /// The value of a header; nil when the header is missing or repeated.
    package func header(_ name: String) -> String? {
        let found = headers.filter { $0.name.utf8.elementsEqual(name.utf8) }
        return found.count == 1 ? found[0].value : nil
    }

    package static func == (a: HTTPResponse, b: HTTPResponse) -> Bool {
        a.status == b.status && a.body == b.body && a.document == b.document
            && a.headers.elementsEqual(b.headers, by: ==)
    }
}

/// Why there is no answer.
package enum HTTPFault: Error, Sendable, Equatable {
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
    /// The server is on this computer or in a private network.
    case privateServer
    /// badged-network cannot be started or has ended before, so nothing was sent.
    case unavailable(Phrase)
    /// badged-network has ended or broken its protocol. What it has sent before is not known.
    case lost(Phrase)

    /// Says why there is no answer, and what to do where that is known. `server` names it in the sentence.
    package func text(_ server: Phrase) -> Phrase {
        switch self {
        case .cancelled: "the request was cancelled"
        case .timeout: "\(server) did not answer in time"
        case .unreachable(let words): "\(server) cannot be reached: \(words)"
        case .proxy(.unreachable, let words): "the proxy cannot be reached: \(words)"
        case .proxy(.credentials, _): "the proxy refused the credentials"
        case .proxy(.login, _): "the proxy asks for a login: name its file in [eid] proxy_credentials"
        case .proxy(.method, _): "the proxy asks for a login by a method that badged does not have (Basic or Digest)"
        case .proxy(.refused(let status), _): "the proxy refused to connect to \(server): HTTP \(status)"
        case .tls(let fault, let words): "\(server) cannot be trusted: \(fault?.text ?? Phrase(verbatim: words))"
        case .tooLarge: "the answer of \(server) is too long"
        case .broken(let words): "\(server) gave no complete answer: \(words)"
        case .privateServer: "\(server) is on this computer or in a private network"
        case .unavailable(let words), .lost(let words): words
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
        self.connect = connect
        self.transfer = transfer
    }
}
