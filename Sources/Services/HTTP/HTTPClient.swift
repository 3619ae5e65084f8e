// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

/// Sends requests to servers, one after the other, on a thread of its own. Redirects are answers like any other.
///
/// The cancellation of a task ends its transfer at once, and each later transfer of this client.
package actor HTTPClient {
    private nonisolated let thread: JobQueue?
    private nonisolated let canceller = HTTPCanceller()
    private let addresses: HostAddresses
    private let authorities: Authorities
    private let limits: HTTPLimits
    private let proxies: ProxySettings?
    private var session: HTTPSession?

    /// Who may issue the certificates of servers.
    package enum Authorities: Sendable, Equatable {
        case system
        /// Only those in a file with certificates in PEM.
        case file(String)
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        thread?.asUnownedSerialExecutor() ?? Loop.sharedUnownedExecutor
    }

    package init(
        _ limits: HTTPLimits,
        _ proxies: ProxySettings?,
        _ authorities: Authorities,
        lookUp: @escaping HostAddresses.LookUp = HostAddresses.system
    ) {
        (self.limits, self.proxies, self.authorities) = (limits, proxies, authorities)
        addresses = HostAddresses(lookUp, canceller)
        thread = JobQueue(thread: "badged-web")
    }

    deinit { thread?.finish() }

    /// Ends the transfer that runs, and refuses new ones.
    package nonisolated func close() { canceller.close() }

    /// Sends one request, at most once, and returns the answer.
    package nonisolated func send(_ request: HTTPRequest) async throws(HTTPFault) -> HTTPResponse {
        let result = await withTaskCancellationHandler {
            await run(request)
        } onCancel: {
            canceller.cancel()
        }
        return try result.get()
    }

    private func run(_ request: HTTPRequest) -> Result<HTTPResponse, HTTPFault> {
        guard thread != nil else { return .failure(.unavailable("no thread is left for the connection")) }
        guard !canceller.isCancelled else { return .failure(.cancelled) }
        return Result { () throws(HTTPFault) in
            try opened().run(request, by: .now + limits.transfer)
        }
    }

    private func opened() throws(HTTPFault) -> HTTPSession {
        if let session { return session }
        let rules: AuthorityFile? =
            switch authorities {
            case .system: nil
            case .file(let path): AuthorityFile(path)
            }
        let new = try HTTPSession(rules, limits, proxies, canceller, addresses)
        session = new
        return new
    }
}
