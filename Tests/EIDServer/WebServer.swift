// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation

/// A server on loopback, with or without TLS, for tests of services that are no eService.
package final class WebServer: Sendable {
    package struct Request: Sendable {
        package let method: String
        package let path: String
        /// By name in lower case.
        package let headers: [String: String]
        package let body: [UInt8]
    }

    package struct Answer: Sendable {
        /// What happens after the answer is made.
        package enum Delivery: Sendable {
            case whole
            /// The connection is reset instead of the answer.
            case reset
            /// The first half of the body, then a reset.
            case half
        }

        package var status: Int
        package var headers: [(String, String)]
        package var body: [UInt8]
        package var delivery: Delivery

        package init(
            status: Int = 200,
            headers: [(String, String)] = [],
            _ body: [UInt8] = [],
            delivery: Delivery = .whole
        ) {
            (self.status, self.headers, self.body, self.delivery) = (status, headers, body, delivery)
        }
    }

    /// Answers a request on a thread of its own; it may block.
    package typealias Handler = @Sendable (Request) -> Answer

    /// `http://127.0.0.1:PORT` or `https://localhost:PORT`
    package let address: String
    /// The certificate of the authority in PEM; empty without TLS.
    package let authority: String
    private let listener: Listener
    private let certificates: TLSCertificates?

    /// - Parameters:
    ///   - isSecure: whether the server uses TLS.
    ///   - isExpired: whether its certificate is too old.
    ///   - handler: answers requests.
    /// - Throws: an error if there is no port, or no certificate can be made.
    package init(isSecure: Bool = false, isExpired: Bool = false, _ handler: @escaping Handler) throws {
        // A client that leaves early must not end the process.
        signal(SIGPIPE, SIG_IGN)
        let answer: Listener.Handler = { request, _ in
            HTTPResponse(
                handler(
                    Request(method: request.method, path: request.path, headers: request.headers, body: request.body)
                )
            )
        }
        guard isSecure else {
            (authority, certificates) = ("", nil)
            listener = try Listener(.http(answer))
            address = "http://127.0.0.1:\(listener.port)"
            return
        }
        let made = try TLSCertificates()
        let profile = TLSProfile(certificate: isExpired ? .expired : .webEC, maximum: .v1_3)
        let context = try TLSContext(profile, made, keys: { _ in nil })
        listener = try Listener(.tls(context, answer))
        certificates = made
        let digits = Data(made.authority.der).base64EncodedString(options: .lineLength64Characters)
        authority = "-----BEGIN CERTIFICATE-----\n\(digits)\n-----END CERTIFICATE-----\n"
        address = "https://localhost:\(listener.port)"
    }

    deinit { listener.close() }

    package func close() { listener.close() }
}

extension HTTPResponse {
    fileprivate init(_ answer: WebServer.Answer) {
        self.init(answer.status, "application/json", answer.body)
        headers += answer.headers
        switch answer.delivery {
        case .whole: delivery = .whole
        case .reset: delivery = .reset
        case .half: delivery = .half
        }
    }
}
