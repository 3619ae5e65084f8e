// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP

/// Follows the refresh address until it leads to the origin of the service. TR-03124-1, 2.7.2.
struct RefreshAddressSearch {
    private let session: HTTPSession
    private let origin: WebAddress.Origin
    private let allowsHTTP: Bool
    private let configuration: EServiceConfiguration

    /// The search ends at `origin`, the origin of the service.
    init(
        _ session: HTTPSession,
        origin: WebAddress.Origin,
        allowsHTTP: Bool,
        _ configuration: EServiceConfiguration
    ) {
        self.session = session
        self.origin = origin
        self.allowsHTTP = allowsHTTP
        self.configuration = configuration
    }

    /// Runs the search.
    /// - Returns: the address for the browser. The TLS certificate of its server is checked.
    func run(from first: WebAddress) async throws(EServiceFailure) -> WebAddress {
        let deadline = ContinuousClock.now + configuration.limits.phase
        var address = first
        var visited: Set<WebAddress.Origin> = []
        var isEmpty = false
        for _ in 0...configuration.limits.redirects {
            if address.origin == origin {
                if address.isSecure, !visited.contains(address.origin) { try await check(address, deadline) }
                return address
            }
            visited.insert(address.origin)
            address = try await next(address, deadline, &isEmpty)
        }
        throw Self.failure(.checkRefreshAddressInvalidHTTPResponse, "too many redirects")
    }

    /// Returns the address to which this address redirects. `isEmpty`: whether the last Location was empty.
    private func next(
        _ address: WebAddress,
        _ deadline: ContinuousClock.Instant,
        _ isEmpty: inout Bool
    ) async throws(EServiceFailure) -> WebAddress {
        let request = HTTPRequest(address: address, headers: ["User-Agent: \(configuration.userAgent.header)"])
        let response = try await session.run(request, by: deadline, orThrow: Self.failure)
        guard [302, 303, 307].contains(response.status) else { throw Self.failure(status: response.status) }
        // An empty reference means the same address; a second one in a row leads nowhere.
        guard let location = response.header("location"), !(location.isEmpty && isEmpty) else {
            throw Self.failure(.checkRefreshAddressEmpty, "no Location")
        }
        isEmpty = location.isEmpty
        guard let target = address.resolving(location) else { throw Self.failure(.checkRefreshAddressInvalidURL, "") }
        guard target.isSecure || allowsHTTP else { throw Self.failure(.checkRefreshAddressNoHTTPSScheme, "") }
        return target
    }

    /// Connects to have the certificate checked, and sends nothing.
    private func check(_ address: WebAddress, _ deadline: ContinuousClock.Instant) async throws(EServiceFailure) {
        do throws(HTTPFault) {
            _ = try await session.run(HTTPRequest(method: .connect, address: address), by: deadline)
        } catch {
            switch error {
            case .timeout, .unreachable, .broken, .lost:
                throw EServiceFailure(.checkRefreshAddressFetchCertificateError, error, .refreshAddress)
            case .cancelled, .proxy, .tls, .tooLarge, .privateServer, .unavailable:
                throw Self.failure(error)
            }
        }
    }

    private static func failure(_ reason: FailureCode, _ detail: String) -> EServiceFailure {
        EServiceFailure(reason, .refreshAddress, detail: detail)
    }

    static func failure(status: Int) -> EServiceFailure {
        let reason = FailureCode.httpStatus(
            status,
            unavailable: .checkRefreshAddressServiceUnavailable,
            serverError: .checkRefreshAddressServerError,
            clientError: .checkRefreshAddressClientError,
            other: .checkRefreshAddressInvalidHTTPResponse
        )
        return failure(reason, "HTTP \(status)")
    }

    static func failure(_ fault: HTTPFault) -> EServiceFailure {
        switch fault {
        case .cancelled: .cancelled
        case .timeout: EServiceFailure(.checkRefreshAddressServiceTimeout, fault, .refreshAddress)
        case .unreachable, .broken, .privateServer, .unavailable, .lost:
            EServiceFailure(.checkRefreshAddressUnknownNetworkError, fault, .refreshAddress)
        case .proxy: EServiceFailure(.checkRefreshAddressProxyError, fault, .refreshAddress)
        case .tooLarge: EServiceFailure(.checkRefreshAddressInvalidHTTPResponse, fault, .refreshAddress)
        case .tls(.ephemeralKeyTooShort, _):
            EServiceFailure(.checkRefreshAddressInvalidEphemeralKeyLength, fault, .refreshAddress)
        case .tls(.certificateKeyTooShort, _):
            EServiceFailure(.checkRefreshAddressUnsupportedCertificate, fault, .refreshAddress)
        case .tls(.notListed, _): EServiceFailure(.checkRefreshAddressHashMissingInCertificate, fault, .refreshAddress)
        case .tls: EServiceFailure(.checkRefreshAddressFatalTLSErrorBeforeReply, fault, .refreshAddress)
        }
    }
}

extension RefreshOutcome {
    /// The query items with which the browser sends the result to the service. TR-03124-1, 2.5.4.
    static func parameters(of result: ECardResult) -> [(name: String, value: String)] {
        guard result.isError else { return [("ResultMajor", "ok")] }
        let known = ["trustedChannelEstablishmentFailed", "communicationError", "cancellationByUser"]
        let word = result.minor?.uri.split(separator: "#", omittingEmptySubsequences: false).last.map { String($0) }
        let minor = known.first { $0 == word } ?? (result.origin == .server ? "serverError" : "clientError")
        return [("ResultMajor", "error"), ("ResultMinor", minor)]
    }
}
