// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Keycard
import Secrets
import Server
import Store
import Text

/// RESET_PIN: changes the PIN, with the old one or with the PUK.
struct ResetPIN: WalletWorkflow {
    /// Whether the client wants to use the PUK.
    let byPUK: Bool

    func run(_ flow: WalletFlow) async throws(WalletFailure) -> ContextEntity {
        let dialogue = flow.dialogue()
        let result = CardResult()
        try await dialogue.run { card throws(KeycardStop) in
            try await dialogue.openChannel(card)
            if byPUK, let tries = card.status?.pinTries, tries > 0 {
                throw .failed(
                    WalletFailure(.pinNotBlocked, "The PIN has \(tries) tries left: a card accepts the PUK only at 0")
                )
            }
            if try await dialogue.unlock(card) == .byPIN { try await change(dialogue, card) }
            result.profile = card.profile
        }
        return result.entity
    }

    @Loop private func change(_ dialogue: KeycardDialogue, _ card: HeldKeycard) async throws(KeycardStop) {
        let pin = SecretBox(try await dialogue.ask(.newPIN, card))
        do throws(KeycardError) {
            guard let pin = pin.take() else { throw .wrongForm }
            try await card.applet.changePIN(to: pin)
        } catch {
            switch error {
            case .status, .wrongForm, .noChannel: throw .failed(WalletFailure(error, at: "CHANGE PIN"))
            default:
                // Only an attempt would show which PIN the card has, and could cost the user a try.
                throw .failed(
                    WalletFailure(
                        .resetPINFailed,
                        "The answer of the card was lost: the card has the new PIN or the old one",
                        at: "CHANGE PIN"
                    )
                )
            }
        }
    }
}

/// PAIR: pairs this computer with a 3.x card.
struct Pair: WalletWorkflow {
    func run(_ flow: WalletFlow) async throws(WalletFailure) -> ContextEntity {
        let dialogue = flow.dialogue()
        let result = CardResult()
        try await dialogue.run { card throws(KeycardStop) in
            guard card.info.generation == .pairing else { throw .failed(.noPairings) }
            try await dialogue.openChannel(card)
            result.profile = card.profile
        }
        return result.entity
    }
}

/// UNPAIR: gives back the slot of this computer, and forgets the pairing.
struct Unpair: WalletWorkflow {
    func run(_ flow: WalletFlow) async throws(WalletFailure) -> ContextEntity {
        let dialogue = flow.dialogue()
        let result = CardResult()
        try await dialogue.run { card throws(KeycardStop) in
            guard card.info.generation == .pairing else { throw .failed(.noPairings) }
            guard let uid = card.info.instanceUID else { throw .failed(.notInitialised) }
            let pairings = flow.services.pairings
            let slot = try await dialogue.keeping { () throws(StoreError) in try await pairings.pairing(with: uid)?.slot
            }
            guard let slot else {
                throw .failed(WalletFailure(.notPaired, "This computer is not paired with the card"))
            }
            if try await dialogue.openWithKnownPairing(card) {
                try await dialogue.step("GET STATUS", card) { () throws(KeycardError) in try await card.refresh() }
                try await dialogue.unlock(card)
                try await dialogue.step("UNPAIR", card) { () throws(KeycardError) in
                    try await card.applet.unpair(slot: slot)
                }
            }
            try await dialogue.keeping { () throws(StoreError) in try await pairings.remove(uid) }
            (card.profile.isPaired, card.profile.status) = (false, nil)
            result.profile = card.profile
        }
        return result.entity
    }
}

/// RESET_CARD: resets a card to its factory state.
struct ResetCard: WalletWorkflow {
    /// The keys that the card must have; nil: none.
    let keyUID: [UInt8]?

    func run(_ flow: WalletFlow) async throws(WalletFailure) -> ContextEntity {
        let dialogue = flow.dialogue(keyUID: .reset(keyUID))
        let result = CardResult()
        try await dialogue.run { card throws(KeycardStop) in
            let uid = card.info.instanceUID
            do throws(KeycardError) {
                try await card.applet.factoryReset(keyUID: keyUID)
            } catch {
                // The reset is not repeated: another card could be in the reader.
                throw .failed(WalletFailure(error, at: "FACTORY RESET"))
            }
            if let uid { try? await flow.services.pairings.remove(uid) }
            card.profile = KeycardProfile(info: await card.applet.info, isTrusted: card.profile.isTrusted)
            result.profile = card.profile
        }
        return result.entity
    }
}

/// The card at the end of a workflow.
@Loop private final class CardResult {
    var profile: KeycardProfile?

    nonisolated init() {}

    var entity: ContextEntity { ContextEntity(type: "card", members: profile?.members ?? []) }
}

extension WalletFailure {
    static let noPairings = WalletFailure(.unsupportedCard, "A card of this version needs no pairing")
}
