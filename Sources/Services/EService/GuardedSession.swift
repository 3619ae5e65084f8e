// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP

/// The connections to one server of an authentication, with the rules for its certificates.
struct GuardedSession {
    let tls: TLSGuard
    let stopwatch: Stopwatch
    private let http: HTTPSession

    init(
        _ tls: TLSGuard,
        _ configuration: EServiceConfiguration,
        _ canceller: HTTPCanceller,
        _ addresses: HostAddresses,
        _ stopwatch: Stopwatch
    ) throws(HTTPFault) {
        let limits = HTTPLimits(connect: configuration.limits.connect, transfer: configuration.limits.transfer)
        (self.tls, self.stopwatch) = (tls, stopwatch)
        http = try HTTPSession(tls, limits, configuration.proxies, canceller, addresses) { transfer, answer in
            stopwatch.add(transfer: transfer, answer: answer)
        }
    }

    /// Runs one transfer on this thread. The transfer ends at `deadline`, or earlier by its own limit.
    func run(_ request: HTTPRequest, by deadline: ContinuousClock.Instant) throws(HTTPFault) -> HTTPResponse {
        try http.run(request, by: deadline)
    }
}
