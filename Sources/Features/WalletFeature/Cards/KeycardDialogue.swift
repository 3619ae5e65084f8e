// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import HDWallet
import ISO7816
import Keycard
import Secp256k1
import Secrets
import Server
import Store
import Text

/// The reason why the dialogue with one Keycard ends.
typealias KeycardStop = CardStop<WalletFailure>

/// The services that all workflows with Keycards use.
struct KeycardServices: Sendable {
    let registry: ReaderRegistry
    let store: StateStore
    let pairings: KeycardPairings
    let wallets: KnownWallets
    let trust: KeycardTrust
    let now: Now

    init(_ registry: ReaderRegistry, _ store: StateStore, _ trust: KeycardTrust, now: @escaping Now) {
        (self.registry, self.store, self.trust, self.now) = (registry, store, trust, now)
        (pairings, wallets) = (KeycardPairings(store), KnownWallets(store))
    }
}

/// The dialogue of a workflow with Keycards: finds a card, opens its channel, and asks for PIN and PUK as the card
/// needs them.
///
/// After the loss of a card, all questions are asked again for the next card. A card that answers wrongly ends the
/// workflow.
@Loop final class KeycardDialogue {
    let workflow: Workflow
    let services: KeycardServices
    private let base: CardDialogue<KeycardRequirements, WalletFailure>
    /// The user in the messages; nil for a workflow without users.
    private let userID: String?
    /// The number of losses of a card that stayed in its reader, since the last answer of the client.
    private var silentLosses = 0

    init(
        _ services: KeycardServices,
        _ workflow: Workflow,
        readerName: String?,
        userID: String?,
        keyUID: KeycardRequirements.KeyUIDRule? = nil
    ) {
        (self.services, self.workflow, self.userID) = (services, workflow, userID)
        base = CardDialogue(
            services.registry,
            workflow,
            readerName: readerName,
            KeycardRequirements(services.trust, keyUID: keyUID),
            now: services.now
        )
    }

    /// Runs `body` with one card after another until `body` ends without the loss of its card. At the end the reader is
    /// free.
    func run(
        _ body: @Loop (HeldKeycard) async throws(KeycardStop) -> Void
    ) async throws(WalletFailure) {
        switch await base.run(body) {
        case .done: return
        case .cancelled: throw .userCanceled
        case .timedOut: throw .requestTimedOut
        case .failed(let failure): throw failure
        }
    }

    // MARK: Steps

    /// Runs one step with the card. A lost card ends the dialogue with this card.
    func step<T: ~Copyable>(
        _ name: StaticString,
        _ card: HeldKeycard,
        _ body: () async throws(KeycardError) -> T
    ) async throws(KeycardStop) -> T {
        do throws(KeycardError) {
            let result = try await body()
            base.cardLies(well: true)
            return result
        } catch {
            throw stop(error, at: name, card)
        }
    }

    private func stop(_ error: KeycardError, at name: StaticString, _ card: HeldKeycard) -> KeycardStop {
        // A card or a reader may fail because the task was cancelled during its dialogue.
        if Task.isCancelled { return .cancelled }
        guard case .card(let cause) = error else { return .failed(WalletFailure(error, at: name)) }
        base.cardLies(well: false)
        // A card that stays in its reader and does not answer is tried again a few times without asking the client.
        if cause != .removed, card.lease.isCurrent {
            silentLosses += 1
            if silentLosses > Self.maximumSilentLosses {
                return .failed(WalletFailure(.cardFailed, "The card does not answer: take it out", at: "\(name)"))
            }
        }
        return .cardLost
    }

    private static let maximumSilentLosses = 3

    /// Runs a step with the store.
    func keeping<T: ~Copyable>(
        _ body: () async throws(StoreError) -> T
    ) async throws(KeycardStop) -> T {
        do throws(StoreError) {
            return try await body()
        } catch {
            throw .failed(WalletFailure(error))
        }
    }

    /// Asks the client.
    func ask<P: Prompt>(_ prompt: P) async throws(KeycardStop) -> P.Answer {
        do throws(Interruption) {
            let answer = try await workflow.ask(prompt)
            silentLosses = 0
            return answer
        } catch {
            throw CardStop(error)
        }
    }

    /// Asks the client for a secret of this card.
    func ask(
        _ kind: KeycardPrompt.Kind,
        _ card: HeldKeycard,
        error: String? = nil
    ) async throws(KeycardStop) -> Secret {
        let box = try await ask(KeycardPrompt(kind: kind, lease: card.lease, userID: userID, error: error))
        guard let secret = box.take() else { throw .failed(WalletFailure(.cardFailed, "A value was used before")) }
        return secret
    }

    // MARK: The channel

    /// Opens the channel of a card, and reads its counters. A 3.x card is paired first if necessary.
    func openChannel(_ card: HeldKeycard) async throws(KeycardStop) {
        guard card.info.isInitialized else { throw .failed(.notInitialised) }
        switch card.info.generation {
        case .certificate:
            try await step("OPEN SECURE CHANNEL", card) { () throws(KeycardError) in
                try await card.applet.openWithCertificate()
            }
        case .pairing:
            if try await !openWithKnownPairing(card) { try await pair(card) }
        }
        try await step("GET STATUS", card) { () throws(KeycardError) in try await card.refresh() }
    }

    /// Opens the channel of a 3.x card with the pairing in the store; false if there is none that the card knows.
    func openWithKnownPairing(_ card: HeldKeycard) async throws(KeycardStop) -> Bool {
        guard let uid = card.info.instanceUID else { return false }
        // Without the store a new pairing would be lost with its slot.
        let found = try await keeping { () throws(StoreError) in
            _ = try await services.store.required()
            return try await services.pairings.pairing(with: uid)
        }
        guard let pairing = found else { return false }
        let isOpen = try await step("OPEN SECURE CHANNEL", card) { () throws(KeycardError) in
            // The card was reset, or the slot was given back by another computer. Nothing authenticates this answer,
            // and a forgotten pairing costs a slot, so the card must give it twice.
            for _ in 1...2 {
                do throws(KeycardError) {
                    try await card.applet.open(pairing)
                    return true
                } catch {
                    guard error == .pairingLost else { throw error }
                    try await card.applet.select()
                }
            }
            return false
        }
        card.profile.isPaired = isOpen
        return isOpen
    }

    /// Pairs with a 3.x card, keeps the pairing and opens the channel.
    ///
    /// The usual password is tried once. The card proves that it knows the password before it uses a slot, so a wrong
    /// password costs nothing.
    func pair(_ card: HeldKeycard) async throws(KeycardStop) {
        guard let uid = card.info.instanceUID else { throw .failed(.notInitialised) }
        try await checkCertificate(card)
        guard card.info.freeSlots != 0 else { throw .failed(WalletFailure(.noFreeSlot, at: "SELECT")) }
        var pairing = try await pair(card) { applet throws(KeycardError) in
            try await applet.pairWithStandardPassword()
        }
        var error: String?
        while pairing == nil {
            let password = SecretBox(try await ask(.pairingPassword, card, error: error))
            pairing = try await pair(card) { applet throws(KeycardError) in
                guard let password = password.take() else { throw .wrongForm }
                return try await applet.pair(password: password)
            }
            error = "The card does not know this pairing password"
        }
        guard let pairing else { return }
        try await keeping { () throws(StoreError) in try await services.pairings.keep(pairing, with: uid) }
        card.profile.isPaired = true
        try await step("OPEN SECURE CHANNEL", card) { () throws(KeycardError) in try await card.applet.open(pairing) }
    }

    /// Pairs; nil if the card does not know the password.
    private func pair(
        _ card: HeldKeycard,
        _ body: (KeycardApplet) async throws(KeycardError) -> KeycardPairing
    ) async throws(KeycardStop) -> KeycardPairing? {
        try await step("PAIR", card) { () throws(KeycardError) -> KeycardPairing? in
            do throws(KeycardError) {
                return try await body(card.applet)
            } catch {
                guard error == .wrongPairingPassword else { throw error }
                return nil
            }
        }
    }

    /// Refuses a 3.x card with a certificate of a foreign authority. Many 3.x cards have no certificate.
    func checkCertificate(_ card: HeldKeycard) async throws(KeycardStop) {
        try await step("IDENTIFY CARD", card) { () throws(KeycardError) in
            do throws(KeycardError) {
                _ = try await card.applet.identify()
            } catch {
                // Before 3.1 there is no such command.
                guard case .status = error else { throw error }
            }
        }
    }

    // MARK: The PIN

    /// How the card was unlocked.
    enum Unlocking {
        case byPIN
        /// The PIN was blocked, and the card has a new one now.
        case byPUK
    }

    /// Asks for the PIN until the card accepts it; for the PUK and a new PIN when no tries are left. The channel is
    /// open.
    @discardableResult
    func unlock(_ card: HeldKeycard) async throws(KeycardStop) -> Unlocking {
        while true {
            guard let status = card.status else { throw .failed(WalletFailure(.noChannel, at: "VERIFY PIN")) }
            if status.pinTries > 0 {
                let pin = try await ask(.pin(tries: status.pinTries), card)
                if try await verify(pin, card) { return .byPIN }
            } else if status.pukTries > 0 {
                if try await unblock(card, tries: status.pukTries) { return .byPUK }
            } else {
                throw .failed(.cardBlocked)
            }
        }
    }

    /// Sends the PIN to the card; false if the card refuses it.
    func verify(_ pin: consuming Secret, _ card: HeldKeycard) async throws(KeycardStop) -> Bool {
        workflow.workBegins()
        let box = SecretBox(pin)
        let verdict = try await step("VERIFY PIN", card) { () throws(KeycardError) in
            guard let pin = box.take() else { throw .wrongForm }
            return try await card.applet.verifyPIN(pin)
        }
        switch verdict {
        case .accepted:
            try await step("GET STATUS", card) { () throws(KeycardError) in try await card.refresh() }
            workflow.session.push(PINValidatedMessage(userID: userID))
            return true
        case .wrong(let triesLeft):
            card.profile.status?.pinTries = triesLeft
            workflow.session.push(InvalidPINMessage(userID: userID, retryCounter: triesLeft))
            return false
        }
    }

    /// Asks for the PUK and a new PIN, and sends both to the card; false if the card refuses the PUK.
    func unblock(_ card: HeldKeycard, tries: Int) async throws(KeycardStop) -> Bool {
        let puk = SecretBox(try await ask(.puk(tries: tries), card))
        let newPIN = SecretBox(try await ask(.newPIN, card))
        workflow.workBegins()
        let verdict = try await step("UNBLOCK PIN", card) { () throws(KeycardError) in
            guard let puk = puk.take(), let newPIN = newPIN.take() else { throw .wrongForm }
            return try await card.applet.unblockPIN(puk: puk, newPIN: newPIN)
        }
        switch verdict {
        case .accepted:
            try await step("GET STATUS", card) { () throws(KeycardError) in try await card.refresh() }
            try await checkWallet(card)
            workflow.session.push(PINValidatedMessage(userID: userID))
            return true
        case .wrong(let triesLeft):
            card.profile.status?.pukTries = triesLeft
            workflow.session.push(InvalidPUKMessage(userID: userID, retryCounter: triesLeft))
            return false
        }
    }

    /// Compares the first public key of the card with the one that badged has derived itself, if it knows the keys.
    ///
    /// 4.0 frees the PIN that was used last, which may be that of the duress wallet.
    func checkWallet(_ card: HeldKeycard) async throws(KeycardStop) {
        guard let uid = card.info.keyUID else { return }
        let expected = try await keeping { () throws(StoreError) in try await services.wallets.firstKey(of: uid) }
        guard let expected else { return }
        let found = try await step("EXPORT KEY", card) { () throws(KeycardError) in
            try await card.applet.exportPublicKey(.firstEthereumAddress)
        }
        guard found == expected else { throw .failed(WalletFailure(.wrongWallet, at: "EXPORT KEY")) }
    }

    /// Opens the channel and unlocks a card that has keys.
    func openWallet(_ card: HeldKeycard) async throws(KeycardStop) {
        guard card.info.isInitialized else { throw .failed(.notInitialised) }
        guard card.info.keyUID != nil else { throw .failed(.noKeys) }
        try await openChannel(card)
        try await unlock(card)
    }
}
