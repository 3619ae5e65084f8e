// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import ChipAccess
import Concurrency
import EID
import EService
import ISO7816
import Server
import Text

/// Runs the dialogue of RUN_CHANGE_PIN: PIN, CAN or PUK as the card needs them, then the new PIN.
@Loop final class ChangePIN {
    private let dialogue: EIDDialogue
    /// Whether the card has confirmed the new PIN.
    private var hasNewPIN = false

    init(_ registry: ReaderRegistry, _ workflow: Workflow, readerName: String?, now: @escaping Now) {
        // The longest command has fewer than 255 bytes of data on every curve, so no reader needs extended length.
        let requirements = EIDRequirements(needsExtendedLength: false, needsPIN: true)
        dialogue = EIDDialogue(registry, workflow, readerName: readerName, requirements, now: now)
        dialogue.abandonment = .cancelled
    }

    /// Runs the dialogue. At its end the reader is free and the card has no open channel.
    /// - Throws: why the card does not have the new PIN, or may not have it.
    func run() async throws(Failure) {
        do throws(Failure) {
            try await dialogue.run { [self] card throws(Failure) in
                try await dialogue.open(card)
                try await changePIN(card)
            }
        } catch {
            // The daemon may end before a card with the new PIN is free.
            guard dialogue.workflow.isAbandoned, hasNewPIN else { throw error }
        }
    }

    private func changePIN(_ card: HeldEIDCard) async throws(Failure) {
        let pin = try await dialogue.ask(.newPIN, PasswordPrompt.Kind.newPIN.digits, card)
        let status: StatusWord
        dialogue.abandonment = Failure(.changePINNoSetEIDPINCommandResponse)
        do throws(ChipError) {
            status = try await card.changePIN(to: pin)
            hasNewPIN = Self.failure(status) == nil
            dialogue.abandonment = Self.failure(status).map { Failure($0) } ?? .cancelled
        } catch {
            await card.destroyChannel()
            // The card may have the new PIN or the old one. Only an attempt would show this, and could cost the user a
            // try.
            guard case .card = error else { throw Failure(.changePINUnrecoverable) }
            throw Failure(.changePINNoSetEIDPINCommandResponse)
        }
        await card.destroyChannel()
        if let failure = Self.failure(status) { throw Failure(failure) }
    }

    /// Returns the meaning of a status of RESET RETRY COUNTER. Keypads return 64xx (PC/SC part 10, MODIFY_PIN_DIRECT).
    private static func failure(_ status: StatusWord) -> FailureCode? {
        switch status.value {
        case 0x9000: nil
        case 0x6400: .changePINInputTimeout
        case 0x6401: .changePINUserCancelled
        case 0x6402: .changePINNewPINMismatch
        case 0x6403: .changePINNewPINInvalidLength
        default: .changePINUnexpectedTransmitStatus
        }
    }
}

// MARK: Messages

/// CHANGE_PIN at the end. A reason means that the workflow failed.
struct ChangePINEndedMessage: Message {
    static let name: StaticString = "CHANGE_PIN"
    let reason: FailureCode?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("success", reason == nil)
        if let reason { object.member("reason", reason.rawValue) }
    }
}
