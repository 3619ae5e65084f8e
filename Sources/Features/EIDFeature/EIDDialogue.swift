// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import ChipAccess
import Concurrency
import EID
import EService
import ISO7816
import Server
import Text

/// The dialogue of a workflow with an eID card: PIN, CAN or PUK as the card needs them.
typealias EIDDialogue = CardDialogue<EIDRequirements>

extension CardDialogue<EIDRequirements> {
    /// Asks for passwords until the PIN has established a channel.
    ///
    /// The retry counter selects the passwords: 3 and 2 PIN, 1 CAN then PIN, 0 PUK. The CAN alone is enough if the user
    /// grants the service that right.
    ///
    /// `authorization` is sent to the card with PACE; nil for PIN management.
    @discardableResult
    func open(_ card: HeldEIDCard, for authorization: PACEAuthorization? = nil) async throws(Failure) -> PACEResult {
        if authorization?.isByCAN == true { return try await openWithCAN(card, for: authorization) }
        var hasCAN = false
        while true {
            switch card.status.retryCounter {
            case 0:
                if try await establish(.puk, .puk, card) != nil { try await unblock(card) }
            case 1 where !hasCAN:
                hasCAN = try await establish(.can, .can, card) != nil
            default:
                if let result = try await establish(.pin, .pin, card, authorization) { return result }
                // A failed attempt also ends the channel of the CAN. The counter selects the next password.
                hasCAN = false
                await card.destroyChannel()
                try await refresh(card)
            }
        }
    }

    private func openWithCAN(
        _ card: HeldEIDCard,
        for authorization: PACEAuthorization?
    ) async throws(Failure) -> PACEResult {
        while true {
            if let result = try await establish(.can, .can, card, authorization) { return result }
        }
    }

    /// Asks for a password and runs PACE with the password. Returns nil if the card refused the password.
    private func establish(
        _ id: PasswordID,
        _ kind: PasswordPrompt.Kind,
        _ card: HeldEIDCard,
        _ authorization: PACEAuthorization? = nil
    ) async throws(Failure) -> PACEResult? {
        // Five digits are a transport PIN, which can only be changed.
        let digits = kind == .pin && authorization == nil ? 5...6 : kind.digits
        let password = try await ask(kind, digits, card, takesAutomatic: kind == .pin && authorization != nil)
        workflow.workBegins()
        let result: HeldEIDCard.PasswordResult
        do throws(ChipError) {
            result = try await card.establish(id, password, for: authorization)
        } catch {
            let isLost = if case .card = error { true } else { false }
            if !isLost { await card.destroyChannel() }
            // A card or a reader may fail because the task was cancelled during its dialogue.
            if Task.isCancelled { throw .cancelled }
            guard isLost else { throw Failure(.maintainCardConnectionPACEUnrecoverable) }
            cardPosition(isGood: false)
            if kind.hasNoCounter { unanswered = card.lease.insertion }
            throw .cardLost
        }
        cardPosition(isGood: true)
        switch result {
        case .established(let result):
            return result
        case .wrong:
            return nil
        case .usedUp:
            card.markInoperative()
            throw Failure(.establishPACEChannelPUKInoperative)
        case .cancelled:
            throw Failure(.establishPACEChannelUserCancelled)
        case .timeout:
            throw Failure(.maintainCardConnectionPACEUnrecoverable)
        }
    }

    /// Resets the retry counter of the PIN, in a channel of the PUK.
    private func unblock(_ card: HeldEIDCard) async throws(Failure) {
        let status: StatusWord
        do throws(ChipError) {
            status = try await card.unblockPIN()
        } catch {
            guard case .card = error else {
                await card.destroyChannel()
                throw Failure(.maintainCardConnectionPACEUnrecoverable)
            }
            unanswered = card.lease.insertion
            throw .cardLost
        }
        await card.destroyChannel()
        switch status.value {
        case 0x9000:
            try await refresh(card)
        case 0x6982, 0x6983, 0x6985, 0x6A88:
            card.markInoperative()
            throw Failure(.establishPACEChannelPUKInoperative)
        default:
            throw Failure(.maintainCardConnectionPACEUnrecoverable)
        }
    }

    /// Reads the retry counter again, outside any channel.
    private func refresh(_ card: HeldEIDCard) async throws(Failure) {
        do throws(ChipError) {
            try await card.readStatus()
        } catch {
            guard case .card = error else { throw Failure(.maintainCardConnectionPACEUnrecoverable) }
            throw .cardLost
        }
        // These attempts cannot deactivate the PIN. Without a usable PIN, another card is needed.
        if card.status.deactivated { throw .cardLost }
    }

    /// Asks the client for a password of this card. Returns nil if the user types the password on the keypad.
    func ask(
        _ kind: PasswordPrompt.Kind,
        _ digits: ClosedRange<Int>,
        _ card: HeldEIDCard,
        takesAutomatic: Bool = false
    ) async throws(Failure) -> SecretBox? {
        do throws(Failure) {
            let isUnanswered = kind.hasNoCounter && unanswered == card.lease.insertion
            unanswered = nil
            let prompt = PasswordPrompt(
                kind: kind,
                digits: digits,
                card: card,
                takesAutomatic: takesAutomatic,
                isUnanswered: isUnanswered
            )
            return try await workflow.ask(prompt)
        } catch {
            if error.code != .cardLost { await card.destroyChannel() }
            throw error
        }
    }
}

/// The rights and the certificate description that PACE confirms for an authentication. TR-03110-2 3.2.
struct PACEAuthorization: Sendable {
    /// The rights that the user grants.
    var chat: CHAT
    /// The description in DER, which a reader with a keypad shows.
    var certificateDescription: [UInt8]
    /// Whether the CAN replaces the PIN, because the user grants the service that right.
    var isByCAN: Bool
}
