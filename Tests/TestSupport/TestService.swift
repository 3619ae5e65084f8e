// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import CountryAuthorities
package import Crypto
package import EID
package import EService
package import ISO7816
import Synchronization
package import Text

/// An in-process eService with its eID-Server and without a network. Terminal authentication, chip authentication and
/// secure messaging are real and use the test PKI. A test can hold the service at any step or let the step fail. Other
/// tests cover the network protocol.
package actor TestService: EServiceConnection {
    /// The calls of a workflow, in order.
    package enum Step: Sendable, Hashable, CaseIterable {
        case request, eac1, challenge, eac2, transmit, fail, refresh
    }

    /// The requests and the behaviour of the service.
    package struct Plan: Sendable {
        package var required: AccessRights? = [.familyName, .address]
        package var optional: AccessRights? = [.givenNames]
        /// The rights of the terminal certificate.
        package var rights = AccessRights(rawValue: 0x3F_FFFF_FFFF).subtracting(AccessRights([.canAllowed]))
        package var auxiliaryData: AuxiliaryData?
        package var transactionInfo: String?
        /// The certificate description in DER; nil for the one of the test PKI.
        package var description: [UInt8]?
        package var eidTypes = EIDType.defaults
        /// Whether the terminal's signature comes in an additional round.
        package var hasAdditionalRound = false
        /// The commands for the card, one batch for each Transmit message.
        package var batches: [[CommandAPDU]] = [
            [.readBinary(shortFileID: 0x05, le: 256)], [.readBinary(shortFileID: 0x11, le: 256)],
        ]
        package var acceptableStatusCodes: [[UInt8]] = [[0x90, 0x00]]
        /// Whether commands are sent without secure messaging.
        package var speaksInTheClear = false
        package var spoilsSignature = false
        package var leavesOutVerifier = false
        package var failures: [Step: EServiceFailure] = [:]
        /// The gates that hold steps until the test opens them.
        package var gates: [Step: Gate] = [:]
        package var url: String? = "https://dienst.example/back"

        package init(_ change: @Sendable (inout Plan) -> Void = { _ in }) { change(&self) }
    }

    /// A gate that holds a step until the test opens it or the task is cancelled.
    package struct Gate: Sendable {
        private let arrivals = AsyncStream<Void>.makeStream()
        private let release = AsyncStream<Void>.makeStream()

        package init() {}

        package func arrival() async { for await _ in arrivals.stream { return } }
        package func open() { release.continuation.finish() }

        fileprivate func pass() async {
            arrivals.continuation.yield()
            for await _ in release.stream {}
        }
    }

    /// A day on which the certificates are valid.
    package static let today = CertificateRecipe.today

    package let plan: Plan
    /// The calls that were made.
    package private(set) var steps: [Step] = []
    /// The error that `fail` received.
    package private(set) var error: ECardResult?
    /// The decrypted answers of the card.
    package private(set) var answers: [ResponseAPDU] = []
    package private(set) var chat: CHAT?
    /// The errors that `sendTransmit` received.
    package private(set) var transmitErrors: [ECardResult] = []
    package nonisolated let closed = AsyncStream<Void>.makeStream()
    /// Filled by a test that ends the connections.
    package nonisolated let interrupted = OneShot<EServiceFailure?>()

    private var pool: CVCertificatePool?
    private var output: EAC1Output?
    private var ephemeral: HeldKey?
    private var keys: HeldKeys?
    /// The exchanges without an answer; all commands of a batch are encrypted before the first answer.
    private var exchanges: ArraySlice<HeldExchange> = []
    private var exchangeCount: UInt32 = 0
    private var rest: ArraySlice<[CommandAPDU]> = []

    package init(_ plan: Plan = Plan()) { self.plan = plan }

    package init(_ change: @Sendable (inout Plan) -> Void) { plan = Plan(change) }

    private func enter(_ step: Step) async throws(EServiceFailure) {
        steps.append(step)
        if let gate = plan.gates[step] { await gate.pass() }
        // `fail` and `refresh` run after a cancellation: the server needs the error, the browser a URL.
        guard !Task.isCancelled || [.fail, .refresh].contains(step) else {
            throw EServiceFailure(.userCancelled, .cancelledByUser)
        }
        if let failure = plan.failures[step] { throw failure }
    }

    // MARK: EServiceConnection

    package func request() async throws(EServiceFailure) -> AuthenticationRequest {
        try await enter(.request)
        return try own { () throws in
            let terminal = try Self.terminalCertificate(plan.rights)
            let verifier = try CVCertificate(try TestPKI.file("dv.cvcert"))
            let pool = CVCertificatePool(terminal: terminal, plan.leavesOutVerifier ? [] : [verifier])
            self.pool = pool
            return AuthenticationRequest(
                terminalCertificate: terminal,
                documentVerifier: verifier,
                description: try CertificateDescription(try plan.description ?? TestPKI.file("description.der")),
                requiredCHAT: plan.required.map { CHAT(.terminal, $0) },
                optionalCHAT: plan.optional.map { CHAT(.terminal, $0) },
                auxiliaryData: plan.auxiliaryData,
                transactionInfo: plan.transactionInfo,
                acceptedEIDTypes: plan.eidTypes,
                certificates: pool
            )
        }
    }

    package func sendEAC1(_ output: EAC1Output) async throws(EServiceFailure) -> EAC2 {
        self.output = output
        chat = output.chat
        try await enter(.eac1)
        return try own { () throws in
            let key = try ECPrivateKey(on: try Curve.brainpoolP256r1.group)
            let point = key.publicKey
            ephemeral = HeldKey(key)
            guard let pool else { throw Unexpected() }
            return EAC2(
                ephemeralPublicKey: point.uncompressed,
                signature: plan.hasAdditionalRound ? nil : try signature(over: output.challenge, point),
                certificates: pool
            )
        }
    }

    package func sendChallenge(_ challenge: [UInt8]) async throws(EServiceFailure) -> [UInt8] {
        try await enter(.challenge)
        return try own { () throws in
            guard let point = ephemeral?.key.publicKey else { throw Unexpected() }
            return try signature(over: challenge, point)
        }
    }

    private static let terminalKey = Result {
        HeldKey(try ECPrivateKey(pkcs8: Secret(try TestPKI.file("terminal.p8"))))
    }

    /// Returns the certificate for these rights from a cache, because the fault matrix needs more than 1000 of them.
    private static func terminalCertificate(_ rights: AccessRights) throws -> CVCertificate {
        if let known = terminalCertificates.withLock({ $0[rights.rawValue] }) { return known }
        let certificate = try CertificateRecipe().changed { $0.chat = CHAT(.terminal, rights) }.certificate()
        terminalCertificates.withLock { $0[rights.rawValue] = certificate }
        return certificate
    }

    private static let terminalCertificates = Mutex<[UInt64: CVCertificate]>([:])

    private func signature(over challenge: [UInt8], _ point: ECPublicKey) throws -> [UInt8] {
        let message = TerminalAuthentication.message(
            idPICC: output?.idPICC ?? [],
            challenge: challenge,
            ephemeralKey: point.compressed,
            auxiliaryData: plan.auxiliaryData?.encoded ?? []
        )
        var signature = try ECDSA.sign(message, with: try Self.terminalKey.get().key, digest: .sha256)
        if plan.spoilsSignature { signature[5] ^= 1 }
        return signature
    }

    package func sendEAC2(_ output: EAC2Output) async throws(EServiceFailure) -> ServerStep {
        try await enter(.eac2)
        rest = plan.batches[...]
        try own { () throws in
            guard let ephemeral else { throw Unexpected() }
            let outcome = try ChipAuthentication.agree(
                ephemeral.key,
                with: try Self.chipKey(in: output.efCardSecurity),
                ephemeral: ephemeral.key.publicKey,
                nonce: output.nonce,
                cipher: .aes128
            )
            guard outcome.token == output.authenticationToken else { throw Unexpected() }
            keys = HeldKeys(outcome.keys.clone())
        }
        return try next()
    }

    package func sendTransmit(
        _ output: [[UInt8]],
        error: ECardResult?
    ) async throws(EServiceFailure) -> ServerStep {
        try await enter(.transmit)
        if let error { transmitErrors.append(error) }
        try own { () throws in
            for bytes in output {
                guard let answer = ResponseAPDU(bytes: bytes),
                    let plain = try exchanges.popFirst()?.channel.unwrap(answer)
                else { throw Unexpected() }
                answers.append(plain)
            }
        }
        return error == nil ? try next() : .finished
    }

    private func next() throws(EServiceFailure) -> ServerStep {
        guard let batch = rest.popFirst() else { return .finished }
        return try own { () throws in
            .transmit(
                try batch.map { command in
                    guard !plan.speaksInTheClear else { return InputAPDU(command: command.bytes) }
                    guard let keys else { throw Unexpected() }
                    let exchange = HeldExchange(SecureMessaging(keys.keys.clone(), exchanges: exchangeCount))
                    let secured = try exchange.channel.wrap(command)
                    exchanges.append(exchange)
                    exchangeCount += 1
                    return InputAPDU(command: secured.bytes, acceptableStatusCodes: plan.acceptableStatusCodes)
                }
            )
        }
    }

    package func fail(_ error: ECardResult) async -> ECardResult? {
        self.error = error
        try? await enter(.fail)
        return nil
    }

    package func refreshAddress(after result: ECardResult) async -> RefreshOutcome {
        do throws(EServiceFailure) {
            try await enter(.refresh)
            let word = result.isError ? "error" : "ok"
            return RefreshOutcome(url: plan.url.map { "\($0)?ResultMajor=\(word)" })
        } catch {
            return RefreshOutcome(url: nil, failure: error)
        }
    }

    package nonisolated func interruption() async -> EServiceFailure? { await interrupted.value(whenCancelled: nil) }

    package nonisolated func close() { closed.continuation.finish() }

    // MARK: Parts

    private struct Unexpected: Error {}

    private final class HeldKey: Sendable {
        let key: ECPrivateKey
        init(_ key: consuming ECPrivateKey) { self.key = key }
    }

    private final class HeldKeys: Sendable {
        let keys: SessionKeys
        init(_ keys: consuming SessionKeys) { self.keys = keys }
    }

    private final class HeldExchange {
        var channel: SecureMessaging
        init(_ channel: consuming SecureMessaging) { self.channel = channel }
    }

    /// Runs a computation of the server, which fails only for invalid data of the card.
    private func own<T>(_ body: () throws -> T) throws(EServiceFailure) -> T {
        do {
            return try body()
        } catch {
            throw EServiceFailure(.startPAOSResponseError, .serverError, detail: "\(error)")
        }
    }

    /// Returns the first chip authentication key of EF.CardSecurity.
    package static func chipKey(in file: [UInt8]) throws -> ECPublicKey {
        for info in try BERTLV(try CardSecurity(file).content).children {
            let fields = try info.children
            guard fields.count >= 2, fields[0].value == OID.bsi + [2, 2, 1, 2] else { continue }
            return try ECPublicKey(Array(try fields[1].children[1].value.dropFirst()), on: .brainpoolP256r1)
        }
        throw Unexpected()
    }
}

extension AccessRights {
    package static let familyName = AccessRights([.readFamilyName])
    package static let givenNames = AccessRights([.readGivenNames])
    package static let address = AccessRights([.readAddress])
}
