// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import ISO7816
package import Loop
import Secrets

/// How a workflow ended; a reason means that it failed.
package struct WorkflowResult: Sendable, Equatable {
    package let reason: FailureCode?

    package var success: Bool { reason == nil }
}

/// The dialogue of RUN_CHANGE_PIN: PIN, CAN or PUK as the card needs them, then the new PIN.
///
/// What is typed is bound to the stay of one card in one reader and used once: after any loss of the card the client is
/// asked again. The order of things is that of docs/architecture.md, Workflows.
@Loop package final class ChangePIN {
    private let client: any WorkflowClient
    private let selection: CardSelection
    private var position: CardPosition

    package init(_ registry: ReaderRegistry, _ client: any WorkflowClient, readerName: String?, now: @escaping Now) {
        self.client = client
        position = CardPosition(now: now)
        // Its longest command has under 255 bytes of data on every curve, so any reader will do.
        selection = CardSelection(registry, client, readerName: readerName, needsExtendedLength: false)
    }

    /// Runs to the end; when it returns the reader is free and no channel is left on the card.
    package func run() async -> WorkflowResult {
        do throws(FailureCode) {
            while try await attempt() == .cardLost {}
            return WorkflowResult(reason: nil)
        } catch {
            return WorkflowResult(reason: error)
        }
    }

    private enum Attempt { case done, cardLost }

    /// One card, from finding it to success or to its loss.
    private func attempt() async throws(FailureCode) -> Attempt {
        let card: HeldCard
        do throws(Interruption) {
            card = try await selection.acquire()
        } catch {
            throw .userCancelled
        }
        var result = Result<Attempt, FailureCode>.success(.cardLost)
        do throws(FailureCode) {
            result = .success(try await dialogue(card) ? .done : .cardLost)
        } catch {
            result = .failure(error)
        }
        let isOver = if case .success(.cardLost) = result { false } else { true }
        await card.release(shelve: isOver)
        if !isOver, position.isBad {
            do throws(Interruption) {
                try await client.pauseForBadCardPosition()
            } catch {
                throw .userCancelled
            }
            position.reset()
        }
        return try result.get()
    }

    /// False when the card was lost on the way and the client has to be asked again.
    private func dialogue(_ card: HeldCard) async throws(FailureCode) -> Bool {
        do throws(Stop) {
            try await establishWithPIN(card)
            try await changePIN(card)
            return true
        } catch {
            switch error {
            case .cardLost: return false
            case .failed(let code): throw code
            }
        }
    }

    private enum Stop: Error {
        case cardLost
        case failed(FailureCode)
    }

    // MARK: PIN, CAN, PUK

    /// Ends with a channel established by the PIN. State-machine: retry counter 3 and 2 PIN, 1 CAN then PIN, 0 PUK.
    private func establishWithPIN(_ card: HeldCard) async throws(Stop) {
        var hasCAN = false
        while true {
            switch card.status.retryCounter {
            case 0:
                if try await establish(.puk, .puk, card) { try await unblock(card) }
            case 1 where !hasCAN:
                hasCAN = try await establish(.can, .can, card)
            default:
                if try await establish(.pin, .pin, card) { return }
                // The channel of the CAN, if there was one, ends with the failed try; the counter tells what is next.
                hasCAN = false
                await card.destroyChannel()
                try await refresh(card)
            }
        }
    }

    /// True when the channel stands, false when the card refused the password.
    private func establish(_ id: PasswordID, _ question: Question, _ card: HeldCard) async throws(Stop) -> Bool {
        let password = try await ask(question, card)
        client.paceStarts()
        let result: HeldCard.PasswordResult
        do throws(EIDError) {
            result = try await card.establish(id, password)
        } catch {
            guard case .card = error else {
                await card.destroyChannel()
                throw .failed(.maintainCardConnectionPACEUnrecoverable)
            }
            position.lost()
            throw .cardLost
        }
        position.reset()
        switch result {
        case .established:
            return true
        case .wrong:
            return false
        case .usedUp:
            card.markInoperative()
            throw .failed(.establishPACEChannelPUKInoperative)
        case .cancelled:
            throw .failed(.establishPACEChannelUserCancelled)
        case .timeout:
            throw .failed(.maintainCardConnectionPACEUnrecoverable)
        }
    }

    /// In a channel of the PUK: gives the PIN its tries back.
    private func unblock(_ card: HeldCard) async throws(Stop) {
        let status: StatusWord
        do throws(EIDError) {
            status = try await card.unblockPIN()
        } catch {
            guard case .card = error else {
                await card.destroyChannel()
                throw .failed(.maintainCardConnectionPACEUnrecoverable)
            }
            throw .cardLost
        }
        await card.destroyChannel()
        switch status.value {
        case 0x9000:
            try await refresh(card)
        case 0x6982, 0x6983, 0x6985, 0x6A88:
            card.markInoperative()
            throw .failed(.establishPACEChannelPUKInoperative)
        default:
            throw .failed(.maintainCardConnectionPACEUnrecoverable)
        }
    }

    /// Reads the retry counter anew, outside any channel.
    private func refresh(_ card: HeldCard) async throws(Stop) {
        do throws(EIDError) {
            try await card.readStatus()
        } catch {
            guard case .card = error else { throw .failed(.maintainCardConnectionPACEUnrecoverable) }
            throw .cardLost
        }
        // Cannot come from our tries; without a PIN to ask for there is nothing to go on with.
        if card.status.deactivated { throw .cardLost }
    }

    private func ask(_ question: Question, _ card: HeldCard) async throws(Stop) -> SecretBox? {
        do throws(Interruption) {
            return try await client.ask(question, card.reader)
        } catch {
            switch error {
            case .cancelled:
                await card.destroyChannel()
                throw .failed(.userCancelled)
            case .cardRemoved:
                throw .cardLost
            }
        }
    }

    // MARK: New PIN

    private func changePIN(_ card: HeldCard) async throws(Stop) {
        let pin = try await ask(.newPIN, card)
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
        // The PIN is changed whatever this read says; it only brings the reader's message up to date.
        try? await card.readStatus()
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
