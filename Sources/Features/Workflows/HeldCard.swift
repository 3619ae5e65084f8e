// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EID
import ISO7816
import Readers
import Secrets

/// One eID card in the hands of one workflow, from connecting to releasing: one insertion, one connection.
///
/// A reader with a keypad runs PACE and the change itself; what is above sees no difference but that no secret comes.
@Loop final class HeldCard {
    let reader: Reader
    let insertion: Insertion
    private let registry: ReaderRegistry
    private let connection: any CardConnection
    private let keypad: (any KeypadConnection)?
    let card: EIDCard
    private let channel: TimedChannel
    /// What the terminal's own part took so far.
    private var cryptography = Duration.zero
    private(set) var status: PINStatus

    /// What became of a password.
    enum PasswordResult {
        case established(PACEResult)
        case wrong
        /// The card does not take this password any more: the PUK is used up.
        case usedUp
        /// On the keypad.
        case cancelled
        case timeout
    }

    private init(
        _ reader: Reader,
        _ insertion: Insertion,
        _ registry: ReaderRegistry,
        _ connection: any CardConnection,
        _ profile: EIDProfile
    ) {
        (self.reader, self.insertion, self.registry, self.connection) = (reader, insertion, registry, connection)
        keypad = reader.description.hasKeypad ? connection as? any KeypadConnection : nil
        channel = TimedChannel(connection)
        card = EIDCard(channel: channel, profile: profile)
        status = profile.status
    }

    /// Connects, selects the application and reads the state of the PIN.
    static func open(
        _ reader: Reader,
        _ insertion: Insertion,
        _ profile: EIDProfile,
        _ registry: ReaderRegistry
    ) async throws(EIDError) -> HeldCard {
        let connection: any CardConnection
        do throws(CardError) {
            connection = try await reader.backend.connect(insertion)
        } catch {
            throw .card(error)
        }
        let held = HeldCard(reader, insertion, registry, connection, profile)
        do throws(EIDError) {
            try await held.card.select()
            try await held.readStatus()
        } catch {
            await connection.disconnect(reset: true)
            throw error
        }
        return held
    }

    /// Outside a secure channel only: an unprotected command ends the channel.
    func readStatus() async throws(EIDError) {
        status = try await card.readPINStatus()
        registry.update(reader, insertion, status)
    }

    /// Runs PACE with a password that comes here or, nil, is typed on the keypad.
    func establish(
        _ id: PasswordID,
        _ password: SecretBox?,
        for authorization: PACEAuthorization? = nil
    ) async throws(EIDError) -> PasswordResult {
        let result: PasswordResult
        let chat = authorization?.chat.object.encoded
        if let keypad {
            result = try await establish(
                KeypadPACERequest(
                    passwordID: id.rawValue,
                    chat: chat ?? [],
                    certificateDescription: authorization?.certificateDescription ?? []
                ),
                on: keypad
            )
        } else {
            guard let password = password?.take() else { throw .protocolViolation("the password was used already") }
            let begin = (ContinuousClock.now, channel.time)
            defer { countCryptography(since: begin) }
            result =
                switch try await card.establishPACE(id, password: password, chat: chat) {
                case .established(let result): .established(result)
                case .wrongPassword: .wrong
                case .usedUp: .usedUp
                }
        }
        if case .established = result, id == .pin {
            // The right PIN has given all tries back; asking would end the channel. TR-03110-2 3.3.
            status = PINStatus(retryCounter: PINStatus.initialRetryCounter)
            registry.update(reader, insertion, status)
        }
        return result
    }

    private func establish(
        _ request: KeypadPACERequest,
        on keypad: any KeypadConnection
    ) async throws(EIDError) -> PasswordResult {
        let result: KeypadPACEResult
        do throws(CardError) {
            result = try await keypad.establishPACE(request)
        } catch {
            throw .card(error)
        }
        switch result.outcome {
        case .established: return .established(PACEResult(result))
        case .wrongPassword: return .wrong
        case .cancelled: return .cancelled
        case .timeout: return .timeout
        case .noCard: throw .card(.removed)
        case .failed where request.passwordID == PasswordID.puk.rawValue && result.mseStatus == StatusWord(0x63C0):
            return .usedUp
        case .failed(let code): throw .protocolViolation("the reader's PACE failed with \(String(code, radix: 16))")
        }
    }

    /// RESET RETRY COUNTER with the new PIN; the status is the card's or, with a keypad, the reader's own.
    func changePIN(to pin: SecretBox?) async throws(EIDError) -> StatusWord {
        if let keypad {
            do throws(CardError) {
                return try await keypad.modifyPIN()
            } catch {
                throw .card(error)
            }
        }
        guard let pin = pin?.take() else { throw .protocolViolation("the new PIN was used already") }
        return try await card.changePIN(to: pin)
    }

    /// RESET RETRY COUNTER without data, in a channel of the PUK.
    func unblockPIN() async throws(EIDError) -> StatusWord {
        guard keypad == nil else {
            // The reader keeps the channel and protects the command itself.
            return try await card.transmit(CommandAPDU(0x00, 0x2C, 0x03, 0x03)).status
        }
        return try await card.unblockPIN()
    }

    /// Runs a protocol with the card; what is not the card's is counted as cryptography.
    func work<T: Sendable>(_ body: () async throws(EIDError) -> T) async throws(EIDError) -> T {
        let begin = (ContinuousClock.now, channel.time)
        defer { countCryptography(since: begin) }
        return try await body()
    }

    private func countCryptography(since begin: (ContinuousClock.Instant, Duration)) {
        cryptography += begin.0.duration(to: .now) - (channel.time - begin.1)
    }

    /// Where the time went since the card was opened.
    var times: (card: Duration, cryptography: Duration) { (channel.time, cryptography) }

    func markInoperative() { registry.markInoperative(reader, insertion) }

    /// Has the card left?
    var isGone: Bool { reader.insertion != insertion }

    /// Returns when the card has left, or the task is cancelled.
    func departure() async {
        while !isGone, !Task.isCancelled { await registry.nextChange() }
    }

    /// Ends the secure channel on both sides.
    func destroyChannel() async {
        if let keypad {
            // The reader forgets its channel at the latest when the card is reset.
            try? await keypad.destroyPACE()
        } else {
            await card.destroyChannel()
        }
    }

    /// Gives the card back, without any channel; a virtual card goes to its shelf when the workflow is over.
    func release(shelve: Bool) async {
        await connection.disconnect(reset: true)
        if shelve { await registry.shelve(reader, insertion) }
        registry.release(reader)
    }
}

extension PACEResult {
    /// What a reader with a keypad says of its own run.
    fileprivate init(_ result: KeypadPACEResult) {
        self.init(
            statusBefore: result.mseStatus ?? .ok,
            idPICC: result.idPICC,
            certificationAuthorities: PACE.CertificationAuthorities(
                current: result.carCurrent.isEmpty ? nil : result.carCurrent,
                previous: result.carPrevious.isEmpty ? nil : result.carPrevious
            )
        )
    }
}
