// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP

/// Fetches the TcToken. Redirects are followed here, so that each is checked like the first address. TR-03124-1, 2.6.
struct TcTokenFetch {
    private let session: HTTPSession
    private let allowsHTTP: Bool
    private let configuration: EServiceConfiguration

    init(_ session: HTTPSession, allowsHTTP: Bool, _ configuration: EServiceConfiguration) {
        self.session = session
        self.allowsHTTP = allowsHTTP
        self.configuration = configuration
    }

    /// Fetches and reads the TcToken.
    /// - Returns: the token, or why it is not valid.
    /// - Throws: `EServiceFailure` when no document was received.
    func run(_ first: WebAddress) async throws(EServiceFailure) -> Result<TcToken, InvalidTcToken> {
        let deadline = ContinuousClock.now + configuration.limits.phase
        var address = first
        var hops = 0
        guard address.isSecure || allowsHTTP else {
            throw EServiceFailure(.getTcTokenInvalidURL, .insecureAddress)
        }
        while true {
            let response = try await fetch(address, deadline)
            switch response.status {
            case 200:
                guard let document = response.document else { throw EServiceFailure(.getTcTokenEmptyData, .noTcToken) }
                return Result { () throws(InvalidTcToken) in try TcToken(document, allowsHTTP: allowsHTTP) }
            case 302, 303, 307:
                hops += 1
                guard hops <= configuration.limits.redirects else {
                    throw EServiceFailure(.getTcTokenInvalidRedirectURL, .endlessRedirect)
                }
                guard let target = response.header("location").flatMap(address.resolving),
                    target.isSecure || allowsHTTP
                else {
                    throw EServiceFailure(.getTcTokenInvalidRedirectURL, .insecureRedirect)
                }
                address = target
            default:
                throw Self.failure(status: response.status)
            }
        }
    }

    private func fetch(
        _ address: WebAddress,
        _ deadline: ContinuousClock.Instant
    ) async throws(EServiceFailure) -> HTTPResponse {
        let headers = ["User-Agent: \(configuration.userAgent.header)", "Accept: text/xml, application/xml"]
        var request = HTTPRequest(address: address, headers: headers, maximumLength: TcToken.maximumLength)
        request.readsDocument = true
        return try await session.run(request, by: deadline, orThrow: Self.failure)
    }

    static func failure(status: Int) -> EServiceFailure {
        let reason = FailureCode.httpStatus(
            status,
            unavailable: .getTcTokenServiceUnavailable,
            serverError: .getTcTokenServerError,
            clientError: .getTcTokenClientError,
            other: .getTcTokenInvalidServerReply
        )
        return EServiceFailure(reason, .noTcToken, detail: "HTTP \(status)")
    }

    static func failure(_ fault: HTTPFault) -> EServiceFailure {
        switch fault {
        case .cancelled: .cancelled
        case .timeout, .unreachable, .broken, .unavailable, .lost, .proxy, .privateServer:
            EServiceFailure(.getTcTokenNetworkError, fault)
        case .tooLarge: EServiceFailure(.getTcTokenInvalidData, fault, .invalidTcToken)
        case .tls(.certificateKeyTooShort, _): EServiceFailure(.getTcTokenInvalidCertificateKeyLength, fault)
        case .tls(.ephemeralKeyTooShort, _): EServiceFailure(.getTcTokenInvalidEphemeralKeyLength, fault)
        case .tls: EServiceFailure(.getTcTokenNetworkError, fault)
        }
    }
}
