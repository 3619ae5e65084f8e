// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EID
import Glibc

/// One online authentication over the network: the steps of `EServiceConnection`, each a request and its answer.
package actor EServiceSession: EServiceConnection {
    private let tcTokenURL: String
    private let configuration: EServiceConfiguration
    private let isDeveloperMode: Bool

    private nonisolated let thread = NetworkThread()
    private nonisolated let canceller = HTTPCanceller()

    /// The way back, as soon as a TcToken has named it, also an invalid one.
    private var refreshAddress: WebAddress?
    private var communicationErrorAddress: WebAddress?
    private var paos: PAOSClient?
    /// Of the connections to the service: the way back leads where the TcToken came from.
    private var memory: TLSMemory?
    private let stopwatch = Stopwatch()
    private var request: AuthenticationRequest?
    private var listed: TLSGuard.Listed?
    private var transmits = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// The `tcTokenURL` is as the client gave it; `request` judges it. Developer mode is for test services only, for which
    /// some faults are logged and forgiven.
    package init(tcTokenURL: String, isDeveloperMode: Bool, _ configuration: EServiceConfiguration) {
        (self.tcTokenURL, self.isDeveloperMode) = (tcTokenURL, isDeveloperMode)
        self.configuration = configuration
    }

    deinit { thread.finish() }

    package var times: ServiceTimes { stopwatch.times }

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
            guard case .eac2(let input) = try paos.exchange(body, else: .didAuthenticateResponse(.eac2)) else {
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
                    else: .didAuthenticateResponse(.eac2)
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
                    detail: "Transmit for ever"
                )
            }
            return try session.step(.transmitResponse(output, error ?? .ok))
        }
    }

    private func step(_ body: PAOSEnvelope.Body) throws(EServiceFailure) -> ServerStep {
        let (paos, _) = try current()
        switch try paos.exchange(body, else: .transmitResponse) {
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
        // The browser of a user who has cancelled before is sent back as well.
        guard !Task.isCancelled else { return await findAddress(after: result) }
        return await withTaskCancellationHandler {
            await findAddress(after: result)
        } onCancel: {
            canceller.cancel()
        }
    }

    private func findAddress(after result: ECardResult) -> RefreshOutcome {
        paos = nil  // its connections are of no use any more
        guard let refreshAddress else { return RefreshOutcome(url: errorAddress) }
        // In developer mode descriptions need not be true.
        let subject = isDeveloperMode ? nil : request?.description.subjectURL.flatMap { WebAddress($0) }
        guard let origin = (subject ?? WebAddress(tcTokenURL))?.origin else { return RefreshOutcome(url: errorAddress) }
        do throws(EServiceFailure) {
            let search = RefreshAddressSearch(
                try session(.standard, nil, RefreshAddressSearch.failure(_:)),
                origin: origin,
                allowsHTTP: isDeveloperMode,
                configuration
            )
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
            // An address, but of no web server: the SDK counts it among those that are not https.
            let isOther = !tcTokenURL.lowercased().hasPrefix("http") && tcTokenURL.contains("//")
            throw isOther
                ? EServiceFailure(.getTcTokenInvalidURL, .noTcToken, detail: "no https address")
                : EServiceFailure(.parseTcTokenInvalidURL, .wrongInvocation)
        }
        let web = try session(.standard, nil, TcTokenFetch.failure(_:))
        let fetch = TcTokenFetch(web, allowsHTTP: isDeveloperMode, configuration)
        let token: TcToken
        switch try fetch.run(address) {
        case .success(let valid):
            token = valid
            (refreshAddress, communicationErrorAddress) = (valid.refreshAddress, valid.communicationErrorAddress)
        case .failure(let refusal):
            (refreshAddress, communicationErrorAddress) = (refusal.refreshAddress, refusal.communicationErrorAddress)
            throw EServiceFailure(.getTcTokenInvalidData, .invalidTcToken, detail: refusal.words)
        }
        let paos = try open(token, web)
        self.paos = paos
        let input = try paos.start(token.sessionIdentifier)
        var connections = web.tls.certificates
        if paos.session !== web { connections += paos.session.tls.certificates }
        let check = RequestCheck(
            configuration: configuration,
            isDeveloperMode: isDeveloperMode,
            origin: address.origin,
            connections: connections
        )
        let outcome = try stopwatch.measure(\.checks) { () throws(EServiceFailure) in try check.judge(input) }
        listed = outcome.listed
        paos.session.tls.listed = outcome.listed
        request = outcome.request
        return outcome.request
    }

    /// With a key: on connections of their own. Without: on those of the TcToken, or on such as resume its TLS session.
    private func open(_ token: TcToken, _ web: HTTPSession) throws(EServiceFailure) -> PAOSClient {
        let session: HTTPSession
        if let key = token.preSharedKey {
            let pair = TLSGuard.PreSharedKey(identity: Array(token.sessionIdentifier.utf8), key: key)
            session = try self.session(.preSharedKey, pair, PAOSClient.failure(_:))
        } else {
            session = web
            web.tls.requiresResumption = true
        }
        return PAOSClient(session, token.serverAddress, configuration)
    }

    private func session(
        _ profile: TLSProfile,
        _ key: TLSGuard.PreSharedKey?,
        _ failure: (HTTPFault) -> EServiceFailure
    ) throws(EServiceFailure) -> HTTPSession {
        let tls = TLSGuard(profile, preSharedKey: key, isDeveloperMode: isDeveloperMode, log: configuration.log)
        tls.listed = listed
        do throws(HTTPFault) {
            try HTTPSession.load()
            if memory == nil { memory = TLSMemory() }
            return try HTTPSession(tls, configuration.limits, canceller, key == nil ? memory : nil, stopwatch)
        } catch {
            if case .unavailable(let words) = error {
                configuration.warn("online authentication needs libcurl (Debian package libcurl4): \(words)")
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

    /// Runs one step on the actor's thread; the end of the task ends its transfer.
    private nonisolated func cancellable<T: Sendable>(_ step: Step<T>) async throws(EServiceFailure) -> T {
        // Not isolated, so that `run` is a call into the actor: the body of withTaskCancellationHandler itself may find
        // itself on one of the language's own threads, which must not wait (seen with Swift 6.3).
        let result = await withTaskCancellationHandler {
            await run(step)
        } onCancel: {
            canceller.cancel()
        }
        return try result.get()
    }

    private func run<T: Sendable>(_ step: Step<T>) -> Result<T, EServiceFailure> {
        Result { () throws(EServiceFailure) in try step(self) }
    }
}
