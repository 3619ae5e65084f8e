// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import ChipAccess
import Concurrency
import EID
import ISO7816
import Readers
import Text

/// One eID card that a workflow uses.
///
/// A reader with a keypad runs PACE and the change of the PIN itself. Then the workflow gets no secret from the client.
@Loop final class HeldEIDCard {
    let lease: CardLease
    private let card: EIDCard
    private let keypad: (any KeypadConnection)?
    /// Whether the reader had a keypad when this card was taken.
    let hasKeypad: Bool
    private var profile: EIDCardProfile
    /// Decides about PINs without a person; nil: there are none.
    private let automaticPINs: AutomaticPINs?
    /// Whether the next password is such a PIN.
    private var isAutomatic = false

    var status: PINStatus { profile.eid.status }
    /// EF.CardAccess, as the card has sent it.
    var cardAccess: [UInt8] { card.profile.cardAccess.bytes }

    /// The result of a password at the card.
    enum PasswordResult {
        case established(PACEResult)
        case wrong
        /// The card does not accept this password any more, because the PUK has no uses left.
        case usedUp
        /// The user has cancelled on the keypad.
        case cancelled
        case timeout
    }

    init(_ lease: CardLease, _ profile: EIDCardProfile, _ automaticPINs: AutomaticPINs? = nil) {
        self.lease = lease
        self.profile = profile
        self.automaticPINs = automaticPINs
        let connection = lease.connection
        hasKeypad = lease.reader.description.hasKeypad
        keypad = hasKeypad ? connection as? any KeypadConnection : nil
        card = EIDCard(channel: connection, profile: profile.eid)
    }

    private func set(_ status: PINStatus) {
        profile = profile.with(status)
        lease.update(profile)
    }

    /// Notes for all clients that the PUK has no uses left.
    func markInoperative() {
        profile.isInoperative = true
        lease.update(profile)
    }

    /// Runs a step of the dialogue with the card, on the thread of its connection if it has one.
    func step<Value: Sendable>(
        _ body: @escaping @Sendable (EIDCard) async throws(ChipError) -> Value
    ) async throws(ChipError) -> Value {
        try await lease.connection.run(orIfGivenUp: ChipError.card(.cancelled)) { [card] () async throws(ChipError) in
            try await body(card)
        }
    }

    /// Selects the application, and reads the state of the PIN.
    func open() async throws(ChipError) {
        set(
            try await step { card throws(ChipError) in
                try await card.select()
                return try await card.readPINStatus()
            }
        )
    }

    /// Reads the state of the PIN. The unprotected command ends a secure channel.
    func readStatus() async throws(ChipError) {
        set(try await step { card throws(ChipError) in try await card.readPINStatus() })
    }

    /// Notes that the next password is a PIN that a program gives without a person.
    /// - Throws: why the card does not get it.
    func useAutomaticPIN() throws(Failure) {
        guard let automaticPINs else {
            throw Failure(.wrongArgument, "No automatic PIN, because this dialogue takes none")
        }
        try automaticPINs.use(lease, triesLeft: status.retryCounter)
        isAutomatic = true
    }

    /// Runs PACE with a password; nil if the user types the password on the keypad.
    func establish(
        _ id: PasswordID,
        _ password: SecretBox?,
        for authorization: PACEAuthorization? = nil
    ) async throws(ChipError) -> PasswordResult {
        let result: PasswordResult
        let isAutomatic = self.isAutomatic
        self.isAutomatic = false
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
            let outcome = try await step { card throws(ChipError) in
                guard let password = password?.take() else { throw .protocolViolation("the password was used already") }
                return try await card.establishPACE(id, password: password, chat: chat)
            }
            result =
                switch outcome {
                case .established(let result): .established(result)
                case .wrongPassword: .wrong
                case .usedUp: .usedUp
                }
        }
        if isAutomatic, case .wrong = result { automaticPINs?.wasWrong(lease) }
        if case .established = result, id == .pin {
            // The right PIN resets the retry counter. A command that reads the counter would end the channel.
            // TR-03110-2 3.3.
            set(PINStatus(retryCounter: PINStatus.initialRetryCounter))
        }
        return result
    }

    private func establish(
        _ request: KeypadPACERequest,
        on keypad: any KeypadConnection
    ) async throws(ChipError) -> PasswordResult {
        let result = try await answered(await keypad.establishPACE(request))
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

    /// Sends RESET RETRY COUNTER with the new PIN. The status is that of the card or, with a keypad, of the reader.
    func changePIN(to pin: SecretBox?) async throws(ChipError) -> StatusWord {
        if let keypad { return try await answered(await keypad.modifyPIN()) }
        return try await step { card throws(ChipError) in
            guard let pin = pin?.take() else { throw .protocolViolation("the new PIN was used already") }
            return try await card.changePIN(to: pin)
        }
    }

    /// Sends RESET RETRY COUNTER without data, in a channel of the PUK.
    func unblockPIN() async throws(ChipError) -> StatusWord {
        guard keypad == nil else {
            // The reader keeps the channel and protects the command itself.
            return try await card.transmit(CommandAPDU(0x00, 0x2C, 0x03, 0x03)).status
        }
        return try await step { card throws(ChipError) in try await card.unblockPIN() }
    }

    /// Ends the secure channel on both sides.
    func destroyChannel() async {
        if let keypad {
            // The reader ends its channel when the card is reset, if not earlier.
            try? await keypad.destroyPACE()
        } else {
            try? await step { await $0.destroyChannel() }
        }
    }
}

extension PACEResult {
    /// The result of PACE that a reader with a keypad has run itself.
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
