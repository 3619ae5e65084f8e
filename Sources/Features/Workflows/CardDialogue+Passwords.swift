// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EID
import EService
import ISO7816
import Secrets

/// PIN, CAN or PUK as the card needs them.
extension CardDialogue {
    /// Ends with a channel established by the PIN; the retry counter says what is asked for on the way: 3 and 2 PIN, 1 CAN
    /// then PIN, 0 PUK. Or by the CAN, where the user allows the service to come with it.
    ///
    /// `authorization` is what PACE confirms to the card; nil for PIN management.
    @discardableResult
    func open(_ card: HeldCard, for authorization: PACEAuthorization? = nil) async throws(Stop) -> PACEResult {
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
                // The channel of the CAN, if there was one, ends with the failed try; the counter tells what is next.
                hasCAN = false
                await card.destroyChannel()
                try await refresh(card)
            }
        }
    }

    private func openWithCAN(
        _ card: HeldCard,
        for authorization: PACEAuthorization?
    ) async throws(Stop) -> PACEResult {
        while true {
            if let result = try await establish(.can, .can, card, authorization) { return result }
        }
    }

    /// nil when the card refused the password.
    private func establish(
        _ id: PasswordID,
        _ question: Question,
        _ card: HeldCard,
        _ authorization: PACEAuthorization? = nil
    ) async throws(Stop) -> PACEResult? {
        let password = try await ask(question, card)
        client.paceStarts()
        let result: HeldCard.PasswordResult
        do throws(EIDError) {
            result = try await card.establish(id, password, for: authorization)
        } catch {
            guard case .card = error else {
                await card.destroyChannel()
                throw .failed(.maintainCardConnectionPACEUnrecoverable)
            }
            cardLies(well: false)
            throw .cardLost
        }
        cardLies(well: true)
        switch result {
        case .established(let result):
            return result
        case .wrong:
            return nil
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

    /// Asks the client about this stay of this card.
    func ask(_ question: Question, _ card: HeldCard) async throws(Stop) -> SecretBox? {
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
}

/// What the password confirms to the card for an authentication. TR-03110-2 3.2.
struct PACEAuthorization: Sendable {
    /// The rights that the user grants.
    var chat: CHAT
    /// DER; a reader with a keypad shows it.
    var certificateDescription: [UInt8]
    /// The CAN opens the card in the PIN's place: the user has left the service the right to it.
    var isByCAN: Bool
}
