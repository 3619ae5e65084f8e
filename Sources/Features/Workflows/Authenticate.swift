// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import EID
package import EService
import ISO7816

/// How RUN_AUTH ended.
package struct AuthenticationResult: Sendable, Equatable {
    package let result: ECardResult
    /// nil: the service has what it asked for.
    package let reason: FailureCode?
    /// Where the user's browser goes on; nil when the service named no address.
    package let url: String?
    /// For the log.
    package let detail: String

    package init(result: ECardResult, reason: FailureCode?, url: String?, detail: String) {
        (self.result, self.reason, self.url, self.detail) = (result, reason, url, detail)
    }
}

/// What an authentication asks of its client beside the questions of every workflow.
@Loop package protocol AuthenticationClient: WorkflowClient {
    /// Shows what the service asks for, and returns what the user leaves of it. Until then no command goes to a card.
    func confirm(_ consent: Consent) async throws(Interruption) -> Consent
    /// A step begins; percent of the whole.
    func progress(_ percent: Int)
}

/// The dialogue of RUN_AUTH: the service says what it wants, the user grants it, the card opens and proves itself to the
/// service's eID-Server, which then reads through its own channel. TR-03124-1 2.4, TR-03112-7 3.6.4.
@Loop package final class Authenticate {
    private let registry: ReaderRegistry
    private let client: any AuthenticationClient
    private let service: any EServiceConnection
    private let readerName: String?
    private let now: Now
    private let today: CVDate
    /// The first thing that went wrong; what follows from it does not count.
    private var failure: EServiceFailure?
    /// Where the time went; complete when `run` has returned.
    package private(set) var times = AuthenticationTimes()

    package init(
        _ registry: ReaderRegistry,
        _ client: any AuthenticationClient,
        _ service: any EServiceConnection,
        readerName: String?,
        now: @escaping Now,
        today: CVDate
    ) {
        (self.registry, self.client, self.service) = (registry, client, service)
        (self.readerName, self.now, self.today) = (readerName, now, today)
    }

    /// Runs to the end; when it returns the server knows how it ended, the reader is free and no channel is left.
    package func run() async -> AuthenticationResult {
        let begin = ContinuousClock.now
        client.progress(0)
        do throws(EServiceFailure) {
            try await authenticate()
        } catch {
            if failure == nil { failure = error }
            await service.fail(error.result)
        }
        client.progress(80)
        let result = failure?.result ?? .ok
        let refresh = await service.refreshAddress(after: result)
        times.service = await service.times
        service.close()
        times.total = begin.duration(to: .now)
        let reason = failure ?? refresh.failure
        return AuthenticationResult(
            result: reason?.result ?? result,
            reason: reason?.reason,
            url: refresh.url,
            detail: reason?.detail ?? ""
        )
    }

    private func authenticate() async throws(EServiceFailure) {
        let request: AuthenticationRequest
        do throws(EServiceFailure) {
            request = try await service.request()
        } catch {
            // A service that fails in the moment in which the client cancels: the client hears of its CANCEL.
            throw Task.isCancelled ? EServiceFailure(.userCancelled, .cancelledByUser) : error
        }
        let consent: Consent
        do throws(Interruption) {
            consent = try await client.confirm(Consent(request, today: today))
        } catch {
            throw EServiceFailure(.userCancelled, .cancelledByUser)
        }
        let authorization = PACEAuthorization(
            chat: CHAT(.terminal, consent.effective),
            certificateDescription: request.description.encoded,
            isByCAN: consent.isByCAN
        )
        let selection = CardSelection(registry, client, readerName: readerName, CardRequirements(request, consent))
        let dialogue = CardDialogue(client, selection, now: now)
        do throws(FailureCode) {
            try await dialogue.run { card throws(CardDialogue.Stop) in
                defer {
                    times.card += card.times.card
                    times.cryptography += card.times.cryptography
                }
                let pace = try await dialogue.open(card, for: authorization)
                do throws(EServiceFailure) {
                    try await serve(card, request, authorization.chat, pace)
                } catch {
                    await card.destroyChannel()
                    failure = failure ?? error
                    throw .failed(error.reason)
                }
                await card.destroyChannel()
            }
        } catch {
            throw failure ?? EServiceFailure(error, Self.status(of: error))
        }
        if let failure { throw failure }
    }

    /// What the dialogue before the service's part can end with.
    private static func status(of reason: FailureCode) -> FailureStatus {
        switch reason {
        case .userCancelled: .cancelledByUser
        case .establishPACEChannelUserCancelled: .cancelledOnReader
        case .establishPACEChannelPUKInoperative: .pukInoperative
        case .maintainCardConnectionPACEUnrecoverable: .cardProtocol
        default: .unknown
        }
    }

    // MARK: The card and the server

    /// From the open channel to the end of the server's commands.
    private func serve(
        _ card: HeldCard,
        _ request: AuthenticationRequest,
        _ chat: CHAT,
        _ pace: PACEResult
    ) async throws(EServiceFailure) {
        // EAC1
        client.progress(20)
        let challenge = try await command(card, .didAuthenticateEAC1CardCommandFailed, .cardCommunication) {
            () throws(EIDError) in try await card.card.getChallenge()
        }
        let authorities = pace.certificationAuthorities
        let references = [authorities.current, authorities.previous].compactMap { $0 }
        let output = EAC1Output(
            chat: chat,
            authorityReferences: references,
            efCardAccess: card.card.profile.cardAccess.bytes,
            idPICC: pace.idPICC,
            challenge: challenge
        )
        let answer = try await exchange(card) { service throws(EServiceFailure) in try await service.sendEAC1(output) }

        // EAC2
        var signature = answer.signature ?? []
        if answer.signature == nil {
            signature = try await exchange(card) { service throws(EServiceFailure) in
                try await service.sendChallenge(challenge)
            }
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
        client.progress(40)
        let (security, chip) = try await command(card, .didAuthenticateEAC2CardCommandFailed, .terminalRefused) {
            () throws(EIDError) in
            try await card.card.authenticateTerminal(proof)
            let security = try await card.card.readCardSecurity()
            return (security, try await card.card.authenticateChip(security, ephemeralKey: proof.ephemeralKey))
        }
        let result = EAC2Output(
            efCardSecurity: security.bytes,
            authenticationToken: chip.token,
            nonce: chip.nonce
        )
        var step = try await exchange(card) { service throws(EServiceFailure) in try await service.sendEAC2(result) }

        // Transmit
        if case .transmit = step { client.progress(60) }
        var count = 0
        while case .transmit(let commands) = step {
            count += commands.count
            guard count <= Self.maximumCommands else {
                throw EServiceFailure(.transmitCardCommandFailed, .unexpectedMessage, detail: "too many commands")
            }
            let (answers, error) = try await transmit(commands, to: card)
            step = try await exchange(card) { service throws(EServiceFailure) in
                try await service.sendTransmit(answers, error: error)
            }
        }
    }

    /// Commands of one server for one card. All files in pieces of ten bytes are fewer.
    private static let maximumCommands = 10_000

    /// Bytes of the card's answers to one batch: a hundred times the files of a card.
    private static let maximumAnswers = 4 << 20

    /// One batch; ends early at a status that the server has not allowed for.
    private func transmit(
        _ commands: [InputAPDU],
        to card: HeldCard
    ) async throws(EServiceFailure) -> (answers: [[UInt8]], error: ECardResult?) {
        var answers: [[UInt8]] = []
        var size = 0
        for input in commands {
            guard let apdu = CommandAPDU(bytes: input.command) else {
                throw EServiceFailure(.transmitCardCommandFailed, .unexpectedMessage, detail: "no command APDU")
            }
            let answer = try await command(card, .transmitCardCommandFailed, .cardCommunication) {
                () throws(EIDError) in try await card.card.passThrough(apdu)
            }
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

    /// Commands to the card, which must stay.
    private func command<T: Sendable>(
        _ card: HeldCard,
        _ reason: FailureCode,
        _ status: FailureStatus,
        _ body: () async throws(EIDError) -> T
    ) async throws(EServiceFailure) -> T {
        guard !Task.isCancelled else { throw EServiceFailure(.userCancelled, .cancelledByUser) }
        do throws(EIDError) {
            return try await card.work(body)
        } catch {
            switch error {
            case .card(.tooLong), .status(StatusWord(0x6700)):
                throw EServiceFailure(reason, .wrongLength, detail: "\(error)")
            case .card(.removed):
                throw EServiceFailure(.cardRemoved, .cardRemoved)
            case .card where card.isGone:
                throw EServiceFailure(.cardRemoved, .cardRemoved)
            case .card:
                throw EServiceFailure(reason, .cardCommunication, detail: "\(error)")
            case .cancelled:
                throw EServiceFailure(.userCancelled, .cancelledByUser)
            case .status, .protocolViolation, .unsupported:
                throw EServiceFailure(reason, status, detail: "\(error)")
            }
        }
    }

    /// One round with the server. A card that leaves meanwhile ends it at once.
    private func exchange<T: Sendable>(
        _ card: HeldCard,
        _ body: @escaping @Sendable (any EServiceConnection) async throws(EServiceFailure) -> T
    ) async throws(EServiceFailure) -> T {
        let service = service
        let round = Task.immediate { @Loop () async -> Result<T, EServiceFailure> in
            do throws(EServiceFailure) {
                return .success(try await body(service))
            } catch {
                return .failure(error)
            }
        }
        let watch = Task.immediate { @Loop in
            await card.departure()
            if !Task.isCancelled { round.cancel() }
        }
        let result = await withTaskCancellationHandler {
            await round.value
        } onCancel: {
            round.cancel()
        }
        watch.cancel()
        if card.isGone { throw EServiceFailure(.cardRemoved, .cardRemoved) }
        return try result.get()
    }
}
