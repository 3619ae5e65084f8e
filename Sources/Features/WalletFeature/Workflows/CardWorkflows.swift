// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Host
import Keycard
import Server
import Store
import Text

/// RESET_PIN: changes the PIN, with the old one or with the PUK.
struct ResetPIN: WalletWorkflow {
    /// Whether the client wants to use the PUK.
    let byPUK: Bool

    func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity {
        let dialogue = flow.dialogue()
        return try await dialogue.run { card throws(Failure) in
            try await dialogue.openChannel(card)
            if byPUK, let tries = card.status?.pinTries, tries > 0, !dialogue.hasNewPIN(card) {
                let count: Phrase = tries == 1 ? "1 try" : "\(tries) tries"
                throw Failure(
                    .pinNotBlocked,
                    "The PIN has \(count) left, and a card takes the PUK only when there is none: change the PIN"
                        + " with the PIN (RESET_PIN without puk, badgectl wallet pin)"
                )
            }
            if try await dialogue.unlock(card) == .byPIN { try await change(dialogue, card) }
            return card.entity
        }
    }

    @Loop private func change(_ dialogue: KeycardDialogue, _ card: HeldKeycard) async throws(Failure) {
        let pin = SecretBox(try await dialogue.ask(.newPIN, card))
        do throws(KeycardError) {
            guard let pin = pin.take() else { throw .wrongForm }
            try await card.applet.changePIN(to: pin)
        } catch {
            switch error {
            case .status, .wrongForm, .noChannel: throw Failure(error, at: "CHANGE PIN")
            default:
                // Only an attempt would show which PIN the card has, and could cost the user a try.
                var failure = Failure(.resetPINFailed, "The answer of the card was lost", at: "CHANGE PIN")
                failure.change =
                    "The card has the new PIN or the old one. Type the new PIN first; a wrong one uses a try"
                throw failure
            }
        }
    }
}

/// PAIR: pairs this computer with a 3.x card.
struct Pair: WalletWorkflow {
    func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity {
        let dialogue = flow.dialogue()
        return try await dialogue.run { card throws(Failure) in
            guard card.info.generation == .pairing else { throw .noPairings }
            try await dialogue.openChannel(card)
            return card.entity
        }
    }
}

/// UNPAIR with `others`: frees the slots of all other computers, such as lost ones.
struct UnpairOthers: WalletWorkflow {
    func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity {
        let dialogue = flow.dialogue()
        return try await dialogue.run { card throws(Failure) in
            guard card.info.generation == .pairing else { throw .noPairings }
            try await dialogue.openChannel(card)
            guard let uid = card.info.instanceUID, let own = try await flow.services.pairings.pairing(with: uid)?.slot
            else { throw .notInitialised }
            try await dialogue.unlock(card)
            try await dialogue.step("UNPAIR", card) { () async throws(KeycardError) in
                try await card.applet.unpairOthers(than: own)
                // The free slots are in the answer to SELECT.
                try await card.applet.select()
            }
            card.profile.info = await card.applet.info
            return card.entity
        }
    }
}

/// UNPAIR: frees the slot of this computer on the card, and deletes the pairing.
struct Unpair: WalletWorkflow {
    func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity {
        let dialogue = flow.dialogue()
        return try await dialogue.run { card throws(Failure) in
            guard card.info.generation == .pairing else { throw .noPairings }
            guard let uid = card.info.instanceUID else { throw .notInitialised }
            let pairings = flow.services.pairings
            var (slot, isDamaged) = (UInt8?.none, false)
            do throws(Failure) {
                slot = try await pairings.pairing(with: uid)?.slot
            } catch {
                guard error.code == .storeDamaged else { throw error }
                // Its slot stays taken on the card; the record can be deleted.
                isDamaged = true
            }
            guard slot != nil || isDamaged else {
                throw Failure(
                    .notPaired,
                    "This computer is not paired with the card, so there is nothing to give back"
                )
            }
            if let slot, try await dialogue.openWithKnownPairing(card) {
                try await dialogue.readStatus(card)
                try await dialogue.unlock(card)
                try await dialogue.step("UNPAIR", card, await card.applet.unpair(slot: slot))
            }
            try await pairings.remove(uid)
            card.profile.isPaired = false
            card.profile.status = nil
            return card.entity
        }
    }
}

/// RESET_CARD: resets a card to its factory state.
struct ResetCard: WalletWorkflow {
    /// The keys that the card must have; nil: none.
    let keyUID: [UInt8]?

    func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity {
        let dialogue = flow.dialogue(keyUID: .reset(keyUID))
        return try await dialogue.run { card throws(Failure) in
            let uid = card.info.instanceUID
            do throws(KeycardError) {
                try await card.applet.factoryReset(keyUID: keyUID)
            } catch {
                // The reset is not repeated: another card could be in the reader.
                throw Failure(afterReset: error)
            }
            if let uid {
                let event = "the pairing with a card that was reset stays in the store"
                await Failure.logged(event, of: try await flow.services.pairings.remove(uid))
            }
            card.profile = KeycardProfile(info: await card.applet.info, isTrusted: card.profile.isTrusted)
            return card.entity
        }
    }
}

extension HeldKeycard {
    /// The card at the end of a workflow.
    fileprivate var entity: ContextEntity { ContextEntity(type: "card", members: profile.members) }
}

extension Failure {
    static let noPairings = Failure(
        .unsupportedCard,
        "A card of this version needs no pairing: use it without"
    )

    /// The failure of FACTORY RESET, which says what has become of the card.
    fileprivate init(afterReset error: KeycardError) {
        self.init(error, at: "FACTORY RESET")
        switch error {
        case .status:
            text = Phrase("The card refused to be reset, and has its PIN, PUK and keys: take it out and try again")
        case .unsupported:
            text = Phrase(
                "This version of the Keycard cannot be reset, and has its PIN, PUK and keys: use another card"
            )
        case .wrongState: break
        default:
            change =
                "It is not known whether the card was reset: put it in again, and see whether it is still initialised"
                + " (READER, badgectl wallet status)"
        }
    }
}
