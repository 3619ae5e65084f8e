// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import CountryAuthorities
package import EID
package import HTTP
import Text

/// One online authentication over the network. Each step of `EServiceConnection` is a request and its answer.
package actor EServiceSession: EServiceConnection {
    private let tcTokenURL: String
    private let configuration: EServiceConfiguration
    private let isDeveloperMode: Bool

    private nonisolated let job: NetworkJob

    /// Known as soon as a TcToken has named it; the rest of that TcToken may be invalid.
    private var refreshAddress: WebAddress?
    private var communicationErrorAddress: WebAddress?
    /// The connections to the service, for the TcToken and the refresh address.
    private var web: HTTPSession?
    private var paos: PAOSClient?
    private var request: AuthenticationRequest?
    private var transmits = 0

    /// Takes `tcTokenURL` as the client gave it; `request` checks it. Developer mode is for test services only: some of
    /// their faults are logged and ignored.
    package init(
        tcTokenURL: String,
        isDeveloperMode: Bool,
        _ configuration: EServiceConfiguration
    ) {
        self.tcTokenURL = tcTokenURL
        self.isDeveloperMode = isDeveloperMode
        self.configuration = configuration
        job = NetworkJob(configuration.network)
    }

    package nonisolated func interruption() async -> EServiceFailure? {
        await job.interruption().map(PAOSClient.failure)
    }

    package nonisolated func close() {
        let job = job
        Task { @Loop in job.close() }
    }

    // MARK: Steps

    package func request() async throws(EServiceFailure) -> AuthenticationRequest { try await connect() }

    package func sendEAC1(_ output: EAC1Output) async throws(EServiceFailure) -> EAC2 {
        let (paos, request) = try current()
        let known = request.certificates.chain(startingAtFirstOf: output.authorityReferences)
        let body = PAOSEnvelope.Body.eac1(output, namesAuthorities: known == nil)
        guard
            case .eac2(let input) = try await paos.exchange(
                body,
                pendingIfCancelled: .didAuthenticateResponse(.eac2)
            )
        else { throw paos.unexpected }
        var certificates = request.certificates
        certificates.add(input.certificates)
        return EAC2(
            ephemeralPublicKey: input.ephemeralPublicKey,
            signature: input.signature,
            certificates: certificates
        )
    }

    package func sendChallenge(_ challenge: [UInt8]) async throws(EServiceFailure) -> [UInt8] {
        let (paos, _) = try current()
        guard
            case .eacAdditional(let signature) = try await paos.exchange(
                .challenge(challenge),
                pendingIfCancelled: .didAuthenticateResponse(.eac2)
            )
        else { throw paos.unexpected }
        return signature
    }

    package func sendEAC2(_ output: EAC2Output) async throws(EServiceFailure) -> ServerStep {
        try await step(.eac2(output))
    }

    package func sendTransmit(_ output: [[UInt8]], error: ECardResult?) async throws(EServiceFailure) -> ServerStep {
        transmits += 1
        guard transmits < configuration.limits.transmits else {
            throw EServiceFailure(
                .genericSendReceivePAOSUnexpected,
                .unexpectedMessage,
                detail: "too many Transmit messages"
            )
        }
        return try await step(.transmitResponse(output, error ?? .ok))
    }

    private func step(_ body: PAOSEnvelope.Body) async throws(EServiceFailure) -> ServerStep {
        let (paos, _) = try current()
        switch try await paos.exchange(body, pendingIfCancelled: .transmitResponse) {
        case .transmit(let commands): return .transmit(commands)
        case .startPAOSResponse: return .finished
        case .initializeFramework, .eac1, .eac2, .eacAdditional, .invalid: throw paos.unexpected
        }
    }

    @discardableResult
    package func fail(_ error: ECardResult) async -> ECardResult? {
        // The error is also reported after the user has cancelled.
        await Task(executorPreference: Requester.share) { await self.report(error) }.value
    }

    private func report(_ error: ECardResult) async -> ECardResult? { await paos?.fail(error) }

    package func refreshAddress(after result: ECardResult) async -> RefreshOutcome {
        // The browser also returns to the service when the user has cancelled before.
        guard Task.isCancelled else { return await findAddress(after: result) }
        return await Task(executorPreference: Requester.share) { await self.findAddress(after: result) }.value
    }

    private func findAddress(after result: ECardResult) async -> RefreshOutcome {
        paos = nil
        guard let refreshAddress, let web else { return RefreshOutcome(url: errorAddress) }
        await set(requiresResumption: false, of: web)
        // Developer mode accepts a description with another address.
        let subject = isDeveloperMode ? nil : request?.description.subjectURL.flatMap { WebAddress($0) }
        guard let origin = (subject ?? WebAddress(tcTokenURL))?.origin else { return RefreshOutcome(url: errorAddress) }
        let search = RefreshAddressSearch(web, origin: origin, allowsHTTP: isDeveloperMode, configuration)
        do throws(EServiceFailure) {
            let address = try await search.run(from: refreshAddress)
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

    private func connect() async throws(EServiceFailure) -> AuthenticationRequest {
        guard !tcTokenURL.isEmpty else { throw EServiceFailure(.parseTcTokenMissingURL, .wrongInvocation) }
        guard let address = WebAddress(tcTokenURL) else {
            // The SDK reports an address with another scheme as an address that is not https.
            let isOther = !tcTokenURL.lowercased().hasPrefix("http") && tcTokenURL.includes("//")
            throw isOther
                ? EServiceFailure(.getTcTokenInvalidURL, .insecureAddress)
                : EServiceFailure(.parseTcTokenInvalidURL, .wrongInvocation)
        }
        let web = session(nil)
        self.web = web
        let fetch = TcTokenFetch(web, allowsHTTP: isDeveloperMode, configuration)
        let token: TcToken
        switch try await fetch.run(address) {
        case .success(let valid):
            token = valid
            refreshAddress = valid.refreshAddress
            communicationErrorAddress = valid.communicationErrorAddress
        case .failure(let refusal):
            refreshAddress = refusal.refreshAddress
            communicationErrorAddress = refusal.communicationErrorAddress
            throw EServiceFailure(.getTcTokenInvalidData, .invalidTcToken, detail: refusal.words)
        }
        let paos = await open(token, web)
        self.paos = paos
        let input = try await paos.start(token.sessionIdentifier)
        var connections = await web.certificates
        if paos.session !== web { connections += await paos.session.certificates }
        // badged-network has reported no connection, although only developer mode goes without TLS.
        guard !connections.isEmpty || isDeveloperMode else {
            throw EServiceFailure(.certificateCheckFailedHashMissingInDescription, .certificateNotListed)
        }
        let check = RequestCheck(
            configuration: configuration,
            isDeveloperMode: isDeveloperMode,
            origin: address.origin,
            connections: connections
        )
        // CANCEL does not wait for the certificates and the description of the service.
        let cancelled = EServiceFailure(.userCancelled, .cancelledByUser)
        let outcome = try await Pool.run(orIfCancelled: cancelled, check.check(input))
        await set(outcome.listed, of: [web, paos.session])
        request = outcome.request
        return outcome.request
    }

    /// Opens PAOS. With a pre-shared key, PAOS has connections of its own. Otherwise it uses those of the TcToken, or
    /// new ones that resume their TLS session.
    private func open(_ token: TcToken, _ web: HTTPSession) async -> PAOSClient {
        guard let key = token.preSharedKey else {
            await set(requiresResumption: true, of: web)
            return PAOSClient(web, token.serverAddress, configuration)
        }
        return PAOSClient(session(key), token.serverAddress, configuration)
    }

    private func session(_ key: TLSTrust.PreSharedKey?) -> HTTPSession {
        HTTPSession(
            job,
            preSharedKey: key,
            isDeveloperMode: isDeveloperMode,
            HTTPLimits(connect: configuration.limits.connect, transfer: configuration.limits.transfer),
            configuration.network.proxies,
            log: configuration.log
        )
    }

    @Loop private func set(requiresResumption: Bool, of session: HTTPSession) {
        session.conditions.requiresResumption = requiresResumption
    }

    @Loop private func set(_ listed: TLSConditions.Listed, of sessions: [HTTPSession]) {
        for session in sessions { session.conditions.listed = listed }
    }

    private func current() throws(EServiceFailure) -> (PAOSClient, AuthenticationRequest) {
        guard let paos, let request else {
            throw EServiceFailure(.genericSendReceiveNetworkError, .connection, detail: "there is no connection")
        }
        return (paos, request)
    }
}

/// What all online authentications of the daemon share.
package struct EServiceConfiguration: Sendable {
    /// Limits of time and number.
    package struct Limits: Sendable, Equatable {
        /// For connecting, with the TLS handshake.
        package var connect: Duration = .seconds(10)
        /// For one request and its answer.
        package var transfer: Duration = .seconds(30)
        /// For all requests for the TcToken together, and for all of the refresh address together.
        package var phase: Duration = .seconds(60)
        /// For reporting an error to the server.
        package var errorReport: Duration = .seconds(5)
        /// The maximum number of redirects in a row.
        package var redirects = 10
        /// The maximum number of Transmit messages of one authentication.
        package var transmits = 1000
    }

    package var trustAnchors = TrustAnchors()
    /// nil when link certificates are not stored.
    package var linkCertificates: LinkCertificateStore?
    package var network = Network()
    package var userAgent: PAOSEnvelope.UserAgent
    package var limits = Limits()
    /// Returns the day on which certificates must be valid.
    package var today: @Sendable () -> CVDate = { CVDate.today }
    /// Logs a line. Contents of messages are never logged, with or without `Pragma: no-log`.
    package var log: @Sendable (String) -> Void = { _ in }
    /// Logs a warning about a fault that the administrator must repair.
    package var warn: @Sendable (String) -> Void = { _ in }

    package init(userAgent: PAOSEnvelope.UserAgent) { self.userAgent = userAgent }
}
