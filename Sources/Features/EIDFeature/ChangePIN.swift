// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import EID
import EService
import ISO7816
import Server
import Text
import Wire

/// Runs the dialogue of RUN_CHANGE_PIN: PIN, CAN or PUK as the card needs them, then the new PIN.
@Loop struct ChangePIN {
    private let dialogue: EIDDialogue

    init(_ registry: ReaderRegistry, _ workflow: Workflow, readerName: String?, now: @escaping Now) {
        // The longest command has fewer than 255 bytes of data on every curve, so no reader needs extended length.
        let requirements = EIDRequirements(needsExtendedLength: false, needsPIN: true)
        dialogue = EIDDialogue(registry, workflow, readerName: readerName, requirements, now: now)
    }

    /// Runs the dialogue. At its end the reader is free and the card has no open channel.
    /// - Returns: why the workflow failed; nil if the card has the new PIN.
    func run() async -> FailureCode? {
        let outcome = await dialogue.run { card throws(EIDStop) in
            try await dialogue.open(card)
            try await changePIN(card)
        }
        return switch outcome {
        case .done: nil
        case .cancelled: .userCancelled
        case .timedOut: .promptTimeout
        case .failed(let reason): reason
        }
    }

    private func changePIN(_ card: HeldEIDCard) async throws(EIDStop) {
        let pin = try await dialogue.ask(.newPIN, PasswordPrompt.Kind.newPIN.digits, card)
        let status: StatusWord
        do throws(EIDError) {
            status = try await card.changePIN(to: pin)
        } catch {
            await card.destroyChannel()
            // The card may have the new PIN or the old one. Only an attempt would show this, and could cost the user a
            // try.
            guard case .card = error else { throw .failed(.changePINUnrecoverable) }
            throw .failed(.changePINNoSetEIDPINCommandResponse)
        }
        await card.destroyChannel()
        if let failure = Self.failure(status) { throw .failed(failure) }
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

/// CHANGE_PIN at the start of the workflow.
struct ChangePINStartedMessage: Message {
    static let name: StaticString = "CHANGE_PIN"

    func write(to object: inout JSONWriter, _ level: APILevel) {}
}

/// CHANGE_PIN at the end. A reason means that the workflow failed.
struct ChangePINEndedMessage: Message {
    static let name: StaticString = "CHANGE_PIN"
    let reason: FailureCode?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("success", reason == nil)
        if let reason { object.member("reason", reason.rawValue) }
    }
}

/// CHANGE_PIN with the error of RUN_CHANGE_PIN.
struct ChangePINRefusedMessage: RefusalMessage {
    static let name: StaticString = "CHANGE_PIN"
    let error: String
}
