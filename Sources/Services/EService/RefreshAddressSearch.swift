// SPDX-License-Identifier: GPL-3.0-or-later

/// Follows the refresh address until it leads to the service that the certificate is for. TR-03124-1, 2.7.2.
struct RefreshAddressSearch {
    private let session: HTTPSession
    private let origin: WebAddress.Origin
    private let allowsHTTP: Bool
    private let configuration: EServiceConfiguration

    /// The `origin` is that of the service: where the search ends.
    init(
        _ session: HTTPSession,
        origin: WebAddress.Origin,
        allowsHTTP: Bool,
        _ configuration: EServiceConfiguration
    ) {
        (self.session, self.origin) = (session, origin)
        (self.allowsHTTP, self.configuration) = (allowsHTTP, configuration)
    }

    /// - Returns: the address for the browser; the TLS certificate behind it was seen and is one that may be there.
    func run(from first: WebAddress) throws(EServiceFailure) -> WebAddress {
        let deadline = ContinuousClock.now + configuration.limits.phase
        var address = first
        var visited: Set<WebAddress.Origin> = []
        for _ in 0...configuration.limits.redirects {
            if address.origin == origin {
                if address.isSecure, !visited.contains(address.origin) { try check(address, deadline) }
                return address
            }
            visited.insert(address.origin)
            address = try next(address, deadline)
        }
        throw Self.failure(.checkRefreshAddressInvalidHTTPResponse, "redirected for ever")
    }

    /// Where this address redirects to.
    private func next(
        _ address: WebAddress,
        _ deadline: ContinuousClock.Instant
    ) throws(EServiceFailure) -> WebAddress {
        let response: HTTPResponse
        do throws(HTTPFault) {
            let headers = ["User-Agent: \(configuration.userAgent.header)"]
            response = try session.run(HTTPRequest(address: address, headers: headers), by: deadline)
        } catch {
            throw Self.failure(error)
        }
        guard [302, 303, 307].contains(response.status) else { throw Self.failure(status: response.status) }
        guard let location = response.header("location"), !location.isEmpty else {
            throw Self.failure(.checkRefreshAddressEmpty, "no Location")
        }
        guard let target = WebAddress(location) else { throw Self.failure(.checkRefreshAddressInvalidURL, "") }
        guard target.isSecure || allowsHTTP else { throw Self.failure(.checkRefreshAddressNoHTTPSScheme, "") }
        return target
    }

    /// Connects, to see the certificate, and sends nothing.
    private func check(_ address: WebAddress, _ deadline: ContinuousClock.Instant) throws(EServiceFailure) {
        do throws(HTTPFault) {
            _ = try session.run(HTTPRequest(method: .connect, address: address), by: deadline)
        } catch {
            switch error {
            case .timeout, .unreachable, .broken:
                throw Self.failure(.checkRefreshAddressFetchCertificateError, "\(error)")
            case .cancelled, .tls, .tooLarge, .unavailable:
                throw Self.failure(error)
            }
        }
    }

    private static func failure(_ reason: FailureCode, _ detail: String) -> EServiceFailure {
        EServiceFailure(reason, .refreshAddress, detail: detail)
    }

    static func failure(status: Int) -> EServiceFailure {
        let reason: FailureCode =
            switch status {
            case 503: .checkRefreshAddressServiceUnavailable
            case 500...599: .checkRefreshAddressServerError
            case 400...499: .checkRefreshAddressClientError
            default: .checkRefreshAddressInvalidHTTPResponse
            }
        return failure(reason, "HTTP \(status)")
    }

    static func failure(_ fault: HTTPFault) -> EServiceFailure {
        switch fault {
        case .cancelled: .cancelled
        case .timeout: failure(.checkRefreshAddressServiceTimeout, "")
        case .unreachable(let words), .broken(let words), .unavailable(let words):
            failure(.checkRefreshAddressUnknownNetworkError, words)
        case .tooLarge: failure(.checkRefreshAddressInvalidHTTPResponse, "too large")
        case .tls(.ephemeralKeyTooShort(let bits), _):
            failure(.checkRefreshAddressInvalidEphemeralKeyLength, "\(bits) bit")
        case .tls(.certificateKeyTooShort(let bits), _):
            failure(.checkRefreshAddressUnsupportedCertificate, "\(bits) bit")
        case .tls(.notListed, _): failure(.checkRefreshAddressHashMissingInCertificate, "")
        case .tls(let fault, let words):
            failure(.checkRefreshAddressFatalTLSErrorBeforeReply, fault.map { "\($0)" } ?? words)
        }
    }
}

extension RefreshOutcome {
    /// What the browser tells the service. TR-03124-1, 2.5.4.
    static func parameters(of result: ECardResult) -> [(name: String, value: String)] {
        guard result.isError else { return [("ResultMajor", "ok")] }
        let word = result.minor?.uri.split(separator: "#", omittingEmptySubsequences: false).last.map { String($0) }
        let minor =
            if let word, Self.told.contains(word) {
                word
            } else {
                switch result.origin {
                case .server: "serverError"
                case .client: "clientError"
                }
            }
        return [("ResultMajor", "error"), ("ResultMinor", minor)]
    }

    private static let told = ["trustedChannelEstablishmentFailed", "communicationError", "cancellationByUser"]
}
