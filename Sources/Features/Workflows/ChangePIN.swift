// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import EID
package import EService
import ISO7816
import Secrets

/// How a workflow ended; a reason means that it failed.
package struct WorkflowResult: Sendable, Equatable {
    package let reason: FailureCode?

    package var success: Bool { reason == nil }
}

/// The dialogue of RUN_CHANGE_PIN: PIN, CAN or PUK as the card needs them, then the new PIN.
@Loop package final class ChangePIN {
    private let dialogue: CardDialogue

    package init(_ registry: ReaderRegistry, _ client: any WorkflowClient, readerName: String?, now: @escaping Now) {
        // Its longest command has under 255 bytes of data on every curve, so any reader will do.
        let requirements = CardRequirements(needsExtendedLength: false, needsPIN: true)
        let selection = CardSelection(registry, client, readerName: readerName, requirements)
        dialogue = CardDialogue(client, selection, now: now)
    }

    /// Runs to the end; when it returns the reader is free and no channel is left on the card.
    package func run() async -> WorkflowResult {
        do throws(FailureCode) {
            try await dialogue.run { card throws(CardDialogue.Stop) in
                try await dialogue.open(card)
                try await changePIN(card)
            }
            return WorkflowResult(reason: nil)
        } catch {
            return WorkflowResult(reason: error)
        }
    }

    private func changePIN(_ card: HeldCard) async throws(CardDialogue.Stop) {
        let pin = try await dialogue.ask(.newPIN, card)
        let status: StatusWord
        do throws(EIDError) {
            status = try await card.changePIN(to: pin)
        } catch {
            await card.destroyChannel()
            // The card may have the new PIN or not. Nobody can tell without trying one, and that is the user's to do.
            guard case .card = error else { throw .failed(.changePINUnrecoverable) }
            throw .failed(.changePINNoSetEIDPINCommandResponse)
        }
        await card.destroyChannel()
        if let failure = Self.failure(status) { throw .failed(failure) }
    }

    /// What a status of RESET RETRY COUNTER means; 64xx come from keypads (PC/SC part 10, MODIFY_PIN_DIRECT).
    static func failure(_ status: StatusWord) -> FailureCode? {
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
