// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import ChipAccess
import Concurrency
import CountryAuthorities
import EID
import EService
import ISO7816
import Server
import Text

/// The result of RUN_AUTH.
struct AuthenticationResult: Equatable {
    let result: ECardResult
    /// The failure; nil if the authentication succeeded.
    let reason: FailureCode?
    /// The next address for the user's browser; nil if the service sent no address.
    let url: String?
    let sent: SentData
    /// A text for the log.
    let detail: String
}

/// Runs the dialogue of RUN_AUTH. TR-03124-1 2.4, TR-03112-7 3.6.4.
///
/// The service requests rights, and the user grants them. The card authenticates to the eID-Server of the service. The
/// eID-Server then reads the card in a secure channel between both.
@Loop final class Authentication {
    private let registry: ReaderRegistry
    private let workflow: Workflow
    private let service: any EServiceConnection
    private let readerName: String?
    private let now: Now
    private let today: CVDate
    private let automaticPINs: AutomaticPINs
    /// The browser that waits for the end; nil: the client has its address.
    private let visit: BrowserVisit?
    /// The first failure. Later failures result from it and are ignored.
    private var failure: EServiceFailure?
    private var sent = SentData()
    /// Whether the card is open for the servers, so that their steps tell when they fail.
    private var isServing = false

    init(
        _ registry: ReaderRegistry,
        _ workflow: Workflow,
        _ service: any EServiceConnection,
        readerName: String?,
        now: @escaping Now,
        today: CVDate,
        automaticPINs: AutomaticPINs,
        for visit: BrowserVisit?
    ) {
        self.registry = registry
        self.workflow = workflow
        self.service = service
        self.readerName = readerName
        self.now = now
        self.today = today
        self.automaticPINs = automaticPINs
        self.visit = visit
    }

    /// Runs the dialogue. At its end the server has the result, the reader is free and all channels are closed.
    func run() async -> AuthenticationResult {
        workflow.progress(0)
        do throws(EServiceFailure) {
            try await authenticate()
        } catch {
            if failure == nil { failure = error }
            await service.fail(error.result)
        }
        if failure == nil { workflow.progress(80) }
        let result = failure?.result ?? .ok
        // Nobody returns to the service if who has the browser is gone.
        let hasLeft = visit?.hasLostBrowser ?? (workflow.isCancelled && workflow.session.hasLeft)
        let refresh = hasLeft ? RefreshOutcome(url: nil) : await service.refreshAddress(after: result)
        service.close()
        let reason = failure ?? refresh.failure
        return AuthenticationResult(
            result: reason?.result ?? result,
            reason: reason?.reason,
            url: refresh.url,
            sent: sent,
            detail: reason?.detail ?? ""
        )
    }

    private func authenticate() async throws(EServiceFailure) {
        let request: AuthenticationRequest
        do throws(EServiceFailure) {
            request = try await service.request()
        } catch {
            // Report CANCEL to the client even if the service fails at the same time.
            throw Task.isCancelled ? EServiceFailure(.userCancelled, .cancelledByUser) : error
        }
        // No prompt stays open for servers that cannot be reached any more. `serve` finds their end itself.
        let end = await run { [self] () throws(Failure) in
            try await useCard(for: request)
        } until: { [self] in
            guard let interruption = await service.interruption(), !isServing else { return false }
            failure = failure ?? interruption
            workflow.dropPrompt()
            return true
        }
        if case .failure(let error) = end {
            throw failure ?? EServiceFailure(error.reason, Self.status(of: error.reason))
        }
        // A card whose status the service does not accept fails, although the server may report success.
        if let failure { throw failure }
    }

    /// Asks the user for the rights and the PIN, and lets the server read the card.
    private func useCard(for request: AuthenticationRequest) async throws(Failure) {
        let consent = try await workflow.ask(AccessRightsPrompt(consent: Consent(request, today: today)))
        let authorization = PACEAuthorization(
            chat: CHAT(.terminal, consent.effective),
            certificateDescription: request.description.encoded,
            isByCAN: consent.isByCAN
        )
        let requirements = EIDRequirements(request, consent, automaticPINs)
        let dialogue = EIDDialogue(registry, workflow, readerName: readerName, requirements, now: now)
        dialogue.abandonment = .cancelled
        try await dialogue.run { [self] card throws(Failure) in
            let pace = try await dialogue.open(card, for: authorization)
            isServing = true
            do throws(EServiceFailure) {
                try await serve(card, request, consent, authorization.chat, pace)
            } catch {
                await card.destroyChannel()
                failure = failure ?? error
                throw Failure(error.reason)
            }
            await card.destroyChannel()
        }
    }

    /// Returns the status for a failure of the dialogue before the eID-Server's part.
    private static func status(of reason: FailureCode) -> FailureStatus {
        switch reason {
        case .userCancelled: .cancelledByUser
        case .promptTimeout: .promptTimeout
        case .establishPACEChannelUserCancelled: .cancelledOnReader
        case .establishPACEChannelPUKInoperative: .pukInoperative
        case .maintainCardConnectionPACEUnrecoverable: .cardProtocol
        default: .unknown
        }
    }

    // MARK: The card and the server

    /// Runs the part from the open channel to the end of the server's commands.
    private func serve(
        _ card: HeldEIDCard,
        _ request: AuthenticationRequest,
        _ consent: Consent,
        _ chat: CHAT,
        _ pace: PACEResult
    ) async throws(EServiceFailure) {
        // EAC1
        workflow.progress(20)
        let challenge = try await command(
            card,
            .didAuthenticateEAC1CardCommandFailed,
            .cardCommunication,
            await card.step { card throws(ChipError) in try await card.getChallenge() }
        )
        let authorities = pace.certificationAuthorities
        let references = [authorities.current, authorities.previous].compactMap { $0 }
        let output = EAC1Output(
            chat: chat,
            authorityReferences: references,
            efCardAccess: card.cardAccess,
            idPICC: pace.idPICC,
            challenge: challenge
        )
        let answer = try await exchange(card, await self.service.sendEAC1(output))

        // EAC2
        var signature = answer.signature ?? []
        if answer.signature == nil {
            signature = try await exchange(card, await self.service.sendChallenge(challenge))
        }
        guard let chain = answer.certificates.chain(startingAtFirstOf: references) else {
            throw EServiceFailure(.processCertificatesFromEAC2CVCChainMissing, .noChainToCard)
        }
        let proof = TerminalProof(
            chain: chain,
            auxiliaryData: request.auxiliaryData?.encoded ?? [],
            ephemeralKey: answer.ephemeralPublicKey,
            signature: signature
        )
        workflow.progress(40)
        let (security, chip) = try await command(
            card,
            .didAuthenticateEAC2CardCommandFailed,
            .terminalRefused,
            await card.step { card throws(ChipError) in try await Self.authenticate(card, proof) }
        )
        let result = EAC2Output(
            efCardSecurity: security.bytes,
            authenticationToken: chip.token,
            nonce: chip.nonce
        )
        var step = try await exchange(card, await self.service.sendEAC2(result))

        // Transmit
        if case .transmit = step { workflow.progress(60) }
        var count = 0
        while case .transmit(let commands) = step {
            count += commands.count
            guard count <= Self.maximumCommands else {
                throw EServiceFailure(.transmitCardCommandFailed, .unexpectedMessage, detail: "too many commands")
            }
            let (answers, error) = try await transmit(commands, to: card)
            guard !Task.isCancelled else { throw EServiceFailure(.userCancelled, .cancelledByUser) }
            if !answers.isEmpty { sent.sending(consent) }
            do throws(EServiceFailure) {
                step = try await exchange(card, await self.service.sendTransmit(answers, error: error))
            } catch {
                // An error that the eID-Server reports is an answer, too.
                if !answers.isEmpty, error.serverResult != nil { sent.confirmed() }
                throw error
            }
            if !answers.isEmpty { sent.confirmed() }
        }
    }

    /// Proves the rights of the server to the card, and the card to the server.
    private static func authenticate(
        _ card: EIDCard,
        _ proof: TerminalProof
    ) async throws(ChipError) -> (CardSecurity, ChipProof) {
        try await card.authenticateTerminal(proof)
        let security = try await card.readCardSecurity()
        return (security, try await card.authenticateChip(security, ephemeralKey: proof.ephemeralKey))
    }

    /// The largest number of commands of one server for one card. A server that reads all files in pieces of ten bytes
    /// needs fewer.
    private static let maximumCommands = 10_000

    /// The largest number of bytes of the card's answers to one batch: a hundred times the files of a card.
    private static let maximumAnswers = 4 << 20

    /// Sends one batch of commands. A status that the server has not allowed ends the batch early.
    private func transmit(
        _ commands: [InputAPDU],
        to card: HeldEIDCard
    ) async throws(EServiceFailure) -> (answers: [[UInt8]], error: ECardResult?) {
        var answers: [[UInt8]] = []
        var size = 0
        for input in commands {
            guard let apdu = CommandAPDU(bytes: input.command) else {
                throw EServiceFailure(.transmitCardCommandFailed, .unexpectedMessage, detail: "no command APDU")
            }
            let answer = try await command(
                card,
                .transmitCardCommandFailed,
                .cardCommunication,
                await card.step { card throws(ChipError) in try await card.passThrough(apdu) }
            )
            answers.append(answer.bytes)
            size += answer.bytes.count
            guard size <= Self.maximumAnswers else {
                throw EServiceFailure(.transmitCardCommandFailed, .unexpectedMessage, detail: "too much is read")
            }
            guard input.accepts(answer.status.value) else {
                let status = FailureStatus.unexpectedTransmitStatus
                failure = failure ?? EServiceFailure(.transmitCardCommandFailed, status, detail: "\(answer.status)")
                return (answers, ECardResult(status))
            }
        }
        return (answers, nil)
    }

    /// Sends commands to the card, which must stay in its reader.
    private func command<T: Sendable>(
        _ card: HeldEIDCard,
        _ reason: FailureCode,
        _ status: FailureStatus,
        _ answer: @autoclosure () async throws(ChipError) -> T
    ) async throws(EServiceFailure) -> T {
        guard !Task.isCancelled else { throw EServiceFailure(.userCancelled, .cancelledByUser) }
        do throws(ChipError) {
            return try await answer()
        } catch {
            switch error {
            case .card(.tooLong), .status(StatusWord(0x6700)):
                throw EServiceFailure(reason, .wrongLength, detail: "\(error)")
            case .card(.cancelled):
                throw EServiceFailure(.userCancelled, .cancelledByUser)
            case .card(.removed):
                throw EServiceFailure(.cardRemoved, .cardRemoved)
            case .card where !card.lease.isCurrent:
                throw EServiceFailure(.cardRemoved, .cardRemoved)
            case .card:
                throw EServiceFailure(reason, .cardCommunication, detail: "\(error)")
            case .status, .protocolViolation, .unsupported:
                throw EServiceFailure(reason, status, detail: "\(error)")
            }
        }
    }

    /// Runs one round with the server, which ends at once if the card is removed.
    private func exchange<T: Sendable>(
        _ card: HeldEIDCard,
        _ answer: @autoclosure @escaping @Loop @Sendable () async throws(EServiceFailure) -> T
    ) async throws(EServiceFailure) -> T {
        let result = await run(answer) {
            await card.lease.cardLeaves()
            return true
        }
        if !card.lease.isCurrent { throw EServiceFailure(.cardRemoved, .cardRemoved) }
        return try result.get()
    }

    /// Runs `work`, which is cancelled if `event` comes first and returns true.
    private func run<T: Sendable, E: Error>(
        _ work: @escaping @Loop @Sendable () async throws(E) -> T,
        until event: @escaping @Loop @Sendable () async -> Bool
    ) async -> Result<T, E> {
        let round = Task.immediate { @Loop in
            await Result(of: work)
        }
        let watch = Task.immediate { @Loop in
            if await event(), !Task.isCancelled { round.cancel() }
        }
        let result = await round.cancellableValue
        watch.cancel()
        return result
    }
}
