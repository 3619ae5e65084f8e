// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import HDWallet
import ISO7816
import Keycard
import Server
import Store
import Text

/// The services that all workflows with Keycards use.
struct KeycardServices: Sendable {
    let registry: ReaderRegistry
    let store: StateStore
    let pairings: KeycardPairings
    let wallets: KnownWallets
    let trust: KeycardTrust
    let now: Now

    init(_ registry: ReaderRegistry, _ store: StateStore, _ trust: KeycardTrust, now: @escaping Now) {
        self.registry = registry
        self.store = store
        self.trust = trust
        self.now = now
        pairings = KeycardPairings(store)
        wallets = KnownWallets(store)
    }

    /// The Keycards in the readers whose version badged does not support.
    @Loop var otherVersions: [(reader: String, info: KeycardInfo)] { keycards(in: nil).filter { !$0.info.isSupported } }

    /// Refuses a workflow before its first question, if the only Keycards have versions that badged does not support.
    @Loop func refuseOtherVersions(in readerName: String?) throws(Failure) {
        let cards = keycards(in: readerName)
        guard let first = cards.first, !cards.contains(where: { $0.info.isSupported }) else { return }
        throw .otherVersion(first.info)
    }

    @Loop private func keycards(in readerName: String?) -> [(reader: String, info: KeycardInfo)] {
        registry.readers.compactMap { reader in
            guard readerName == nil || readerName == reader.name, case .known(let profile) = reader.card,
                let keycard = profile as? KeycardProfile
            else { return nil }
            return (reader.name, keycard.info)
        }
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
    private let base: CardDialogue<KeycardRequirements>
    /// The user in the messages; nil for a workflow without users.
    private let userID: String?
    /// The number of losses of a card that stayed in its reader, since the last answer of the client.
    private var silentLosses = 0
    /// What this workflow has changed on a card, or may have changed. Both are parts of each failure.
    var change: CardChange?
    var keyChange: KeyChange?

    init(
        _ services: KeycardServices,
        _ workflow: Workflow,
        readerName: String?,
        userID: String?,
        keyUID: KeycardRequirements.KeyUIDRule? = nil
    ) {
        self.services = services
        self.workflow = workflow
        self.userID = userID
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
    func run<Value: Sendable>(
        _ body: @escaping @Loop (HeldKeycard) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await telling { () throws(Failure) in
            try await base.run { card throws(Failure) in
                guard card.info.isSupported else { throw .otherVersion(card.info) }
                return try await body(card)
            }
        }
    }

    /// Runs `body`, whose failure tells what this workflow has changed.
    func telling<Value>(_ body: () async throws(Failure) -> Value) async throws(Failure) -> Value {
        do throws(Failure) {
            return try await body()
        } catch {
            var failure = error
            for text in [change?.text, keyChange?.text].lazy.compactMap(\.self) {
                failure.change = failure.change.map { "\($0). \(text)" } ?? text
            }
            throw failure
        }
    }

    // MARK: Steps

    @_disfavoredOverload func step<T: ~Copyable>(
        _ name: StaticString,
        _ card: HeldKeycard,
        _ result: @autoclosure () async throws(KeycardError) -> T
    ) async throws(Failure) -> T {
        try await step(name, card) { () async throws(KeycardError) in try await result() }
    }

    /// Runs one step with the card. A lost card ends the dialogue with this card.
    func step<T: ~Copyable>(
        _ name: StaticString,
        _ card: HeldKeycard,
        _ body: () async throws(KeycardError) -> T
    ) async throws(Failure) -> T {
        do throws(KeycardError) {
            let result = try await body()
            base.cardPosition(isGood: true)
            return result
        } catch {
            throw stop(error, at: name, card)
        }
    }

    /// Runs a step that changes the card. Until its answer is read, the change is `unknown`; a card that refuses the step
    /// through its channel, or has taken it back, is as before.
    func step<Change, T: ~Copyable>(
        _ name: StaticString,
        _ card: HeldKeycard,
        changing change: ReferenceWritableKeyPath<KeycardDialogue, Change?>,
        to unknown: Change,
        _ body: () async throws(KeycardError) -> T
    ) async throws(Failure) -> T {
        workflow.workBegins()
        let before = self[keyPath: change]
        self[keyPath: change] = unknown
        return try await step(name, card) { () async throws(KeycardError) in
            do throws(KeycardError) {
                return try await body()
            } catch {
                switch error {
                case .status, .wrongWallet: self[keyPath: change] = before
                default: break
                }
                throw error
            }
        }
    }

    private func stop(_ error: KeycardError, at name: StaticString, _ card: HeldKeycard) -> Failure {
        // A card or a reader may fail because the task was cancelled during its dialogue.
        if Task.isCancelled { return .cancelled }
        guard case .card(let cause) = error else { return Failure(error, at: name) }
        base.cardPosition(isGood: false)
        // A card that stays in its reader and does not answer is tried again a few times without asking the client.
        if case .cardFailed = CardVerdict(cause), card.lease.isCurrent {
            silentLosses += 1
            if silentLosses > Self.maximumSilentLosses {
                return Failure(.cardFailed, "The card does not answer: take it out and try again", at: "\(name)")
            }
        }
        return .cardLost
    }

    private static let maximumSilentLosses = 3

    /// Asks the client.
    func ask<P: Prompt>(_ prompt: P) async throws(Failure) -> P.Answer {
        let answer = try await workflow.ask(prompt)
        silentLosses = 0
        return answer
    }

    /// Asks the client for a secret of this card.
    func ask(
        _ kind: KeycardPrompt.Kind,
        _ card: HeldKeycard,
        error: Phrase? = nil
    ) async throws(Failure) -> Secret {
        let box = try await ask(KeycardPrompt(kind: kind, lease: card.lease, userID: userID, error: error))
        guard let secret = box.take() else { throw Failure(.cardFailed, "A value was used before") }
        return secret
    }

    // MARK: The channel

    /// Opens the channel of a card, and reads its counters. A 3.x card is paired first if necessary.
    func openChannel(_ card: HeldKeycard) async throws(Failure) {
        guard card.info.isInitialized else { throw .notInitialised }
        switch card.info.generation {
        case .certificate:
            try await step("OPEN SECURE CHANNEL", card, await card.applet.openWithCertificate())
        case .pairing:
            if try await !openWithKnownPairing(card) { try await pair(card) }
        }
        try await readStatus(card)
    }

    /// Reads the counters. They show whether a card has taken the new PIN of UNBLOCK PIN whose answer was lost.
    func readStatus(_ card: HeldKeycard) async throws(Failure) {
        try await step("GET STATUS", card, await card.refresh())
        guard case .unblocking(let identity) = change, identity == card.identity, let tries = card.status?.pinTries
        else {
            return
        }
        change = tries > 0 ? .newPIN(card.identity) : nil
    }

    /// Whether this workflow has unblocked the PIN of this card already.
    func hasNewPIN(_ card: HeldKeycard) -> Bool { change == .newPIN(card.identity) }

    /// Opens the channel of a 3.x card with the pairing in the store; false if there is none that the card knows.
    func openWithKnownPairing(_ card: HeldKeycard) async throws(Failure) -> Bool {
        guard let uid = card.info.instanceUID else { return false }
        // Without the store a new pairing would be lost with its slot.
        _ = try await services.store.required()
        guard let pairing = try await services.pairings.pairing(with: uid) else { return false }
        let isOpen = try await step("OPEN SECURE CHANNEL", card) { () async throws(KeycardError) in
            // The card was reset, or another computer has freed the slot. This answer is not authenticated, and a
            // deleted pairing costs a slot, so the card must send the answer twice.
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
    func pair(_ card: HeldKeycard) async throws(Failure) {
        guard let uid = card.info.instanceUID else { throw .notInitialised }
        try await checkCertificate(card)
        guard card.info.freeSlots != 0 else { throw Failure(.noFreeSlot, at: "SELECT") }
        var pairing = try await pair(card) { applet throws(KeycardError) in
            try await applet.pairWithStandardPassword()
        }
        var error: Phrase?
        while pairing == nil {
            let password = SecretBox(try await ask(.pairingPassword, card, error: error))
            pairing = try await pair(card) { applet throws(KeycardError) in
                guard let password = password.take() else { throw .wrongForm }
                return try await applet.pair(password: password)
            }
            error = "The card does not know this pairing password"
        }
        guard let pairing else { return }
        try await services.pairings.keep(pairing, with: uid)
        card.profile.isPaired = true
        try await step("OPEN SECURE CHANNEL", card, await card.applet.open(pairing))
    }

    /// Pairs; nil if the card does not know the password.
    private func pair(
        _ card: HeldKeycard,
        _ body: (KeycardApplet) async throws(KeycardError) -> KeycardPairing
    ) async throws(Failure) -> KeycardPairing? {
        try await step("PAIR", card) { () async throws(KeycardError) -> KeycardPairing? in
            do throws(KeycardError) {
                return try await body(card.applet)
            } catch {
                guard error == .wrongPairingPassword else { throw error }
                return nil
            }
        }
    }

    /// Refuses a 3.x card with a certificate of a foreign authority. Many 3.x cards have no certificate.
    @discardableResult
    func checkCertificate(_ card: HeldKeycard) async throws(Failure) -> KeycardCertificate? {
        try await step("IDENTIFY CARD", card, await card.applet.identify())
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
    func unlock(_ card: HeldKeycard) async throws(Failure) -> Unlocking {
        while true {
            guard let status = card.status else { throw Failure(.noChannel, at: "VERIFY PIN") }
            if status.pinTries > 0 {
                let isNew = hasNewPIN(card)
                let pin = try await ask(.pin(tries: status.pinTries), card)
                if try await verify(pin, card) { return isNew ? .byPUK : .byPIN }
            } else if status.pukTries > 0 {
                if try await unblock(card, tries: status.pukTries) { return .byPUK }
            } else {
                throw .cardBlocked(card.info)
            }
        }
    }

    /// Sends the PIN to the card; false if the card refuses it.
    func verify(_ pin: consuming Secret, _ card: HeldKeycard) async throws(Failure) -> Bool {
        workflow.workBegins()
        let box = SecretBox(pin)
        let verdict = try await step("VERIFY PIN", card) { () async throws(KeycardError) in
            guard let pin = box.take() else { throw .wrongForm }
            return try await card.applet.verifyPIN(pin)
        }
        switch verdict {
        case .accepted:
            try await readStatus(card)
            // Also after an answer to UNBLOCK PIN that was lost.
            if hasNewPIN(card) { try await checkWallet(card) }
            pinHolds()
            return true
        case .wrong(let triesLeft):
            card.profile.status?.pinTries = triesLeft
            refused("INVALID_PIN", triesLeft)
            return false
        }
    }

    private func pinHolds() {
        workflow.session.push(
            WrittenMessage("PIN_VALIDATED") { [userID] in
                if let userID { $0.member("userId", userID) }
            }
        )
    }

    /// Reports a value that the card has refused.
    private func refused(_ message: StaticString, _ triesLeft: Int) {
        workflow.session.push(
            WrittenMessage(message) { [userID] in
                if let userID { $0.member("userId", userID) }
                $0.member("retryCounter", triesLeft)
            }
        )
    }

    /// Asks for the PUK and a new PIN, and sends both to the card; false if the card refuses the PUK.
    ///
    /// Then the new PIN is verified: 3.1 goes back to the main PIN at UNBLOCK PIN, but leaves the duress wallet only at
    /// VERIFY PIN. 3.0 has one PIN. On 4.0 this shows a new PIN that is the duress PIN.
    func unblock(_ card: HeldKeycard, tries: Int) async throws(Failure) -> Bool {
        let puk = SecretBox(try await ask(.puk(tries: tries), card))
        let newPIN = try await ask(.newPIN, card)
        let (first, second) = (SecretBox(newPIN.clone()), SecretBox(newPIN))
        let before = change
        let unknown = CardChange.unblocking(card.identity)
        let verdict = try await step("UNBLOCK PIN", card, changing: \.change, to: unknown) {
            () async throws(KeycardError) in
            guard let puk = puk.take(), let newPIN = first.take() else { throw .wrongForm }
            return try await card.applet.unblockPIN(puk: puk, newPIN: newPIN)
        }
        switch verdict {
        case .accepted:
            change = .newPIN(card.identity)
            let verified = try await step("VERIFY PIN", card) { () async throws(KeycardError) in
                guard let newPIN = second.take() else { throw .wrongForm }
                return try await card.applet.verifyPIN(newPIN)
            }
            guard verified == .accepted else {
                throw Failure(.malformed("it refuses the PIN that it has taken"), at: "VERIFY PIN")
            }
            try await readStatus(card)
            try await checkWallet(card)
            pinHolds()
            return true
        case .wrong(let triesLeft):
            change = before
            card.profile.status?.pukTries = triesLeft
            refused("INVALID_PUK", triesLeft)
            return false
        }
    }

    /// Compares the first public key of the card with the one that badged has derived itself, if it knows the keys.
    ///
    /// 4.0 frees the PIN that was used last, which may be that of the duress wallet.
    func checkWallet(_ card: HeldKeycard) async throws(Failure) {
        guard let uid = card.info.keyUID else { return }
        guard let expected = try await services.wallets.firstKey(of: uid) else { return }
        let found = try await step("EXPORT KEY", card, await card.applet.exportPublicKey(.firstEthereumAddress))
        guard found == expected else { throw Failure(.wrongWallet, at: "EXPORT KEY") }
    }

    /// Opens the channel and unlocks a card that has keys.
    func openWallet(_ card: HeldKeycard) async throws(Failure) {
        guard card.info.isInitialized else { throw .notInitialised }
        guard card.info.keyUID != nil else { throw .noKeys }
        try await openChannel(card)
        try await unlock(card)
    }
}

/// A change of the PIN of a card.
enum CardChange: Equatable {
    /// UNBLOCK PIN was sent to the card with this identity, and no answer was read.
    case unblocking([UInt8]?)
    /// The card with this identity has unblocked its PIN.
    case newPIN([UInt8]?)
    /// INIT was sent, and no answer was read.
    case initializing
    /// The card has PIN and PUK.
    case initialized

    /// The text for clients at the end of the workflow.
    var text: Phrase {
        switch self {
        case .unblocking:
            "It is not known whether the card has the new PIN: if its PIN has tries again, the new PIN is the right"
                + " one; otherwise unblock it again"
        case .newPIN: "The PIN of the card is unblocked, and it is the new PIN"
        case .initializing:
            "It is not known whether the card has the new PIN and PUK: keep both until you have seen whether it is"
                + " still new"
        case .initialized: "The card has the new PIN and PUK: keep both"
        }
    }
}

/// A change of the keys of the card with this identity.
enum KeyChange: Equatable {
    /// LOAD KEY or REMOVE KEY was sent, and no answer was read.
    case unknown([UInt8]?)
    case loaded([UInt8]?)

    var card: [UInt8]? {
        switch self {
        case .unknown(let card), .loaded(let card): card
        }
    }

    /// The text for clients at the end of the workflow.
    var text: Phrase {
        switch self {
        case .unknown: "It is not known whether the card has the keys of the words: keep the words"
        case .loaded: "The card has the keys of the words: keep the words"
        }
    }
}

/// Runs a cryptographic step that needs no card.
func compute<T>(_ name: StaticString, _ value: @autoclosure () throws(CryptoError) -> T) throws(Failure) -> T {
    try translating({ (error: CryptoError) in Failure(.crypto(error), at: name) }, value())
}
