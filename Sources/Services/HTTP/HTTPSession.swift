// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Text

/// The connections to one server, in a run of badged-network.
///
/// A cancelled task ends its transfer at once.
@Loop package final class HTTPSession {
    private let job: NetworkJob
    private let trust: @Sendable () throws(HTTPFault) -> TLSTrust
    private let limits: HTTPLimits
    private let proxies: ProxySettings?
    /// The number of the session in the job, and who may be its server; nil before the first transfer.
    private var opened: (number: UInt8, trust: TLSTrust)?
    private let log: @Sendable (String) -> Void

    /// What new connections must fulfil, for `TLSTrust.service`.
    package var conditions = TLSConditions()
    /// Each certificate of a server once, in DER, in the order of the connections.
    package private(set) var certificates: [[UInt8]] = []

    /// The maximum number of different certificates of one session.
    private static let maximumCertificates = 64

    /// Makes a session with a service or its eID-Server. `job` may have other sessions.
    package nonisolated init(
        _ job: NetworkJob,
        preSharedKey: TLSTrust.PreSharedKey?,
        isDeveloperMode: Bool,
        _ limits: HTTPLimits,
        _ proxies: ProxySettings?,
        log: @escaping @Sendable (String) -> Void
    ) {
        self.job = job
        self.limits = limits
        self.proxies = proxies
        self.log = log
        trust = { .service(preSharedKey, isDeveloperMode: isDeveloperMode) }
    }

    /// Makes a session with a run of its own.
    package nonisolated init(_ network: Network, _ authorities: Authorities, _ limits: HTTPLimits) {
        job = NetworkJob(network)
        self.limits = limits
        proxies = network.proxies
        log = { _ in }
        trust = authorities.trust
    }

    /// Ends the transfer that runs, and refuses new ones.
    package func close() { job.close() }

    /// Sends one request as `run(_:by:)` does, and reports why there is no answer as the caller does.
    package func run<Reported: Error>(
        _ request: HTTPRequest,
        by deadline: ContinuousClock.Instant? = nil,
        orThrow report: (HTTPFault) -> Reported
    ) async throws(Reported) -> HTTPResponse {
        try await awaiting(orThrow: report, await run(request, by: deadline))
    }

    /// Sends one request, at most once, and returns the answer. The transfer ends at `deadline`, or earlier by its own
    /// limit.
    package func run(
        _ request: HTTPRequest,
        by deadline: ContinuousClock.Instant? = nil
    ) async throws(HTTPFault) -> HTTPResponse {
        guard !Task.isCancelled else { throw .cancelled }
        let now = ContinuousClock.now
        let end = min(now + limits.transfer, deadline ?? now + limits.transfer)
        let total = Self.milliseconds(now.duration(to: end))
        guard total > 0 else { throw .timeout }
        let session = try open()
        let report = try await job.transfer(
            request,
            in: session.number,
            conditions,
            proxy: request.method == .page ? nil : proxies?.proxy(for: request.address.origin),
            connectMilliseconds: Self.milliseconds(limits.connect),
            totalMilliseconds: total
        )
        for note in report.notes { log(note) }
        try check(report, session.trust)
        let response = try report.result.get()
        guard response.body.count <= request.maximumLength, response.document == nil || request.readsDocument else {
            throw .tooLarge
        }
        return response
    }

    private static func milliseconds(_ time: Duration) -> UInt32 { UInt32(clamping: Int64(time / .milliseconds(1))) }

    private func open() throws(HTTPFault) -> (number: UInt8, trust: TLSTrust) {
        if let opened { return opened }
        let trust = try trust()
        let new = (try job.open(trust), trust)
        opened = new
        return new
    }

    /// Checks the connections of a report again: badged-network has checked them before it sent anything.
    private func check(_ report: NetworkReport, _ trust: TLSTrust) throws(HTTPFault) {
        guard case .service(let key, let isDeveloperMode) = trust else { return }
        for handshake in report.handshakes {
            if !certificates.contains(handshake.certificate) {
                guard certificates.count < Self.maximumCertificates else {
                    throw .tls(nil, "it has shown more than \(Self.maximumCertificates) certificates")
                }
                certificates.append(handshake.certificate)
            }
            guard !isDeveloperMode, case .success = report.result else { continue }
            if let fault = conditions.faults(of: handshake, agreesKey: key == nil).first {
                throw .tls(fault, "badged-network has reported no fault")
            }
        }
    }
}
