// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import CountryAuthorities
import EID
import HTTP
import Text

/// One online authentication over the network. Each step of `EServiceConnection` is a request and its answer.
package actor EServiceSession: EServiceConnection {
    private let tcTokenURL: String
    private let configuration: EServiceConfiguration
    private let isDeveloperMode: Bool

    /// nil if the system could not start a thread; then every step fails.
    private nonisolated let thread: JobQueue?
    private nonisolated let canceller = HTTPCanceller()

    /// Known as soon as a TcToken has named it; the rest of that TcToken may be invalid.
    private var refreshAddress: WebAddress?
    private var communicationErrorAddress: WebAddress?
    /// The connections to the service, for the TcToken and the refresh address.
    private var web: GuardedSession?
    private var paos: PAOSClient?
    /// Shared by all connections.
    private let addresses: HostAddresses
    private var request: AuthenticationRequest?
    private var transmits = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        thread?.asUnownedSerialExecutor() ?? Loop.sharedUnownedExecutor
    }

    /// Takes `tcTokenURL` as the client gave it; `request` checks it. Developer mode is for test services only: some of
    /// their faults are logged and ignored.
    package init(
        tcTokenURL: String,
        isDeveloperMode: Bool,
        _ configuration: EServiceConfiguration,
        startThread: JobQueue.Start = Concurrency.startThread
    ) {
        (self.tcTokenURL, self.isDeveloperMode) = (tcTokenURL, isDeveloperMode)
        self.configuration = configuration
        addresses = HostAddresses(configuration.lookUp, canceller)
        thread = JobQueue(thread: "badged-web", start: startThread)
    }

    deinit { thread?.finish() }

    package nonisolated func close() { canceller.close() }

    // MARK: Steps

    package nonisolated func request() async throws(EServiceFailure) -> AuthenticationRequest {
        try await cancellable { session throws(EServiceFailure) in try session.connect() }
    }

    package nonisolated func sendEAC1(_ output: EAC1Output) async throws(EServiceFailure) -> EAC2 {
        try await cancellable { session throws(EServiceFailure) in
            let (paos, request) = try session.current()
            let known = request.certificates.chain(startingAtFirstOf: output.authorityReferences)
            let body = PAOSEnvelope.Body.eac1(output, namesAuthorities: known == nil)
            guard
                case .eac2(let input) = try paos.exchange(
                    body,
                    pendingIfCancelled: .didAuthenticateResponse(.eac2)
                )
            else {
                throw paos.unexpected
            }
            var certificates = request.certificates
            certificates.add(input.certificates)
            return EAC2(
                ephemeralPublicKey: input.ephemeralPublicKey,
                signature: input.signature,
                certificates: certificates
            )
        }
    }

    package nonisolated func sendChallenge(_ challenge: [UInt8]) async throws(EServiceFailure) -> [UInt8] {
        try await cancellable { session throws(EServiceFailure) in
            let (paos, _) = try session.current()
            guard
                case .eacAdditional(let signature) = try paos.exchange(
                    .challenge(challenge),
                    pendingIfCancelled: .didAuthenticateResponse(.eac2)
                )
            else { throw paos.unexpected }
            return signature
        }
    }

    package nonisolated func sendEAC2(_ output: EAC2Output) async throws(EServiceFailure) -> ServerStep {
        try await cancellable { session throws(EServiceFailure) in try session.step(.eac2(output)) }
    }

    package nonisolated func sendTransmit(_ output: [[UInt8]], error: ECardResult?) async throws(EServiceFailure)
        -> ServerStep
    {
        try await cancellable { session throws(EServiceFailure) in
            session.transmits += 1
            guard session.transmits < session.configuration.limits.transmits else {
                throw EServiceFailure(
                    .genericSendReceivePAOSUnexpected,
                    .unexpectedMessage,
                    detail: "too many Transmit messages"
                )
            }
            return try session.step(.transmitResponse(output, error ?? .ok))
        }
    }

    private func step(_ body: PAOSEnvelope.Body) throws(EServiceFailure) -> ServerStep {
        let (paos, _) = try current()
        switch try paos.exchange(body, pendingIfCancelled: .transmitResponse) {
        case .transmit(let commands): return .transmit(commands)
        case .startPAOSResponse: return .finished
        case .initializeFramework, .eac1, .eac2, .eacAdditional: throw paos.unexpected
        }
    }

    @discardableResult
    package func fail(_ error: ECardResult) async -> ECardResult? {
        canceller.reset()
        return paos?.fail(error)
    }

    package nonisolated func refreshAddress(after result: ECardResult) async -> RefreshOutcome {
        canceller.reset()
        // The browser also returns to the service when the user has cancelled before.
        guard !Task.isCancelled else { return await findAddress(after: result) }
        return await withTaskCancellationHandler {
            await findAddress(after: result)
        } onCancel: {
            canceller.cancel()
        }
    }

    private func findAddress(after result: ECardResult) -> RefreshOutcome {
        paos = nil
        guard let refreshAddress, let web else { return RefreshOutcome(url: errorAddress) }
        web.tls.requiresResumption = false
        // Developer mode accepts a description with another address.
        let subject = isDeveloperMode ? nil : request?.description.subjectURL.flatMap { WebAddress($0) }
        guard let origin = (subject ?? WebAddress(tcTokenURL))?.origin else { return RefreshOutcome(url: errorAddress) }
        let search = RefreshAddressSearch(web, origin: origin, allowsHTTP: isDeveloperMode, configuration)
        do throws(EServiceFailure) {
            let address = try search.run(from: refreshAddress)
            return RefreshOutcome(url: address.adding(query: RefreshOutcome.parameters(of: result)))
        } catch {
            configuration.log("refresh address: \(error.reason.rawValue) \(error.detail)")
            return RefreshOutcome(url: errorAddress, failure: error)
        }
    }

    private var errorAddress: String? {
        communicationErrorAddress?.adding(query: RefreshOutcome.parameters(of: ECardResult(.refreshAddress)))
    }

    // MARK: The first step

    private func connect() throws(EServiceFailure) -> AuthenticationRequest {
        guard !tcTokenURL.isEmpty else { throw EServiceFailure(.parseTcTokenMissingURL, .wrongInvocation) }
        guard let address = WebAddress(tcTokenURL) else {
            // The SDK reports an address with another scheme as an address that is not https.
            let isOther = !tcTokenURL.lowercased().hasPrefix("http") && tcTokenURL.includes("//")
            throw isOther
                ? EServiceFailure(.getTcTokenInvalidURL, .insecureAddress)
                : EServiceFailure(.parseTcTokenInvalidURL, .wrongInvocation)
        }
        let web = try session(.standard, nil, TcTokenFetch.failure(_:))
        self.web = web
        let fetch = TcTokenFetch(web, allowsHTTP: isDeveloperMode, configuration)
        let token: TcToken
        switch try fetch.run(address) {
        case .success(let valid):
            token = valid
            (refreshAddress, communicationErrorAddress) = (valid.refreshAddress, valid.communicationErrorAddress)
            let origin = valid.refreshAddress.origin
            if configuration.proxies?.proxy(for: origin) == nil { addresses.begin(origin.host) }
        case .failure(let refusal):
            (refreshAddress, communicationErrorAddress) = (refusal.refreshAddress, refusal.communicationErrorAddress)
            throw EServiceFailure(.getTcTokenInvalidData, .invalidTcToken, detail: refusal.words)
        }
        let paos = try open(token, web)
        self.paos = paos
        let input = try paos.start(token.sessionIdentifier)
        var connections = web.tls.certificates
        if paos.session.tls !== web.tls { connections += paos.session.tls.certificates }
        let check = RequestCheck(
            configuration: configuration,
            isDeveloperMode: isDeveloperMode,
            origin: address.origin,
            connections: connections
        )
        let outcome = try check.check(input)
        (web.tls.listed, paos.session.tls.listed) = (outcome.listed, outcome.listed)
        request = outcome.request
        return outcome.request
    }

    /// Opens PAOS. With a pre-shared key, PAOS has connections of its own. Otherwise it uses those of the TcToken, or
    /// new ones that resume their TLS session.
    private func open(_ token: TcToken, _ web: GuardedSession) throws(EServiceFailure) -> PAOSClient {
        guard let key = token.preSharedKey else {
            web.tls.requiresResumption = true
            return PAOSClient(web, token.serverAddress, configuration)
        }
        let pair = TLSGuard.PreSharedKey(identity: Array(token.sessionIdentifier.utf8), key: key)
        let session = try session(.preSharedKey, pair, PAOSClient.failure(_:))
        return PAOSClient(session, token.serverAddress, configuration)
    }

    private func session(
        _ profile: TLSProfile,
        _ key: TLSGuard.PreSharedKey?,
        _ failure: (HTTPFault) -> EServiceFailure
    ) throws(EServiceFailure) -> GuardedSession {
        let tls = TLSGuard(profile, preSharedKey: key, isDeveloperMode: isDeveloperMode, log: configuration.log)
        do throws(HTTPFault) {
            return try GuardedSession(tls, configuration, canceller, addresses)
        } catch {
            if case .unavailable(let words) = error {
                configuration.warn("online authentication is not possible: \(words)")
            }
            throw failure(error)
        }
    }

    // MARK: Order and cancellation

    private func current() throws(EServiceFailure) -> (PAOSClient, AuthenticationRequest) {
        guard let paos, let request else {
            throw EServiceFailure(.genericSendReceiveNetworkError, .connection, detail: "there is no connection")
        }
        return (paos, request)
    }

    private typealias Step<T> = @Sendable (isolated EServiceSession) throws(EServiceFailure) -> T

    /// Runs one step on the actor's thread; the cancellation of the task ends its transfer.
    ///
    /// Not isolated, so that `run` is a call into the actor. With Swift 6.3 the body of withTaskCancellationHandler may
    /// run on a thread of the global pool, which must not wait for a server.
    private nonisolated func cancellable<T: Sendable>(_ step: Step<T>) async throws(EServiceFailure) -> T {
        let result = await withTaskCancellationHandler {
            await run(step)
        } onCancel: {
            canceller.cancel()
        }
        return try result.get()
    }

    private func run<T: Sendable>(_ step: Step<T>) -> Result<T, EServiceFailure> {
        guard thread != nil else {
            let words = "no thread is left for the connection"
            return .failure(EServiceFailure(.genericSendReceiveNetworkError, .connection, detail: words))
        }
        return Result { () throws(EServiceFailure) in try step(self) }
    }
}

/// The connections to one server of an authentication, with the rules for its certificates.
struct GuardedSession {
    let tls: TLSGuard
    private let http: HTTPSession

    init(
        _ tls: TLSGuard,
        _ configuration: EServiceConfiguration,
        _ canceller: HTTPCanceller,
        _ addresses: HostAddresses
    ) throws(HTTPFault) {
        let limits = HTTPLimits(connect: configuration.limits.connect, transfer: configuration.limits.transfer)
        self.tls = tls
        http = try HTTPSession(tls, limits, configuration.proxies, canceller, addresses)
    }

    /// Runs one transfer on this thread. The transfer ends at `deadline`, or earlier by its own limit.
    func run(_ request: HTTPRequest, by deadline: ContinuousClock.Instant) throws(HTTPFault) -> HTTPResponse {
        try http.run(request, by: deadline)
    }
}
