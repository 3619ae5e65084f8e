// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Cards
import Concurrency
import HDWallet
import Keycard
import Server
import Text

/// The card that signs: its binding, its key and its signatures.
extension WalletOperation {
    /// The path of the key: m/44'/194'/0'/0/0. SLIP-44.
    private static let path = DerivationPath("m/44'/194'/0'/0/0")
    /// About every second signature of a card is canonical.
    private static let maximumSignatures = 32

    /// Shows a request, and signs its digest when the user has accepted it.
    func signature(
        _ shown: ShownRequest,
        _ permission: AccountName?,
        _ known: NodeAccount?
    ) async throws(Failure) -> CompactSignature {
        try await approve(shown)
        return try await withCard(permission, known) { dialogue, card throws(Failure) in
            try await self.signature(of: shown, dialogue, card)
        }
    }

    func approve(_ shown: ShownRequest) async throws(Failure) {
        try await workflow.ask(WalletRequestPrompt(shown: shown))
    }

    /// Runs `body` with a card that belongs to the binding, is unlocked, and has a key that the account knows.
    func withCard<Value: Sendable>(
        _ permission: AccountName?,
        _ known: NodeAccount?,
        _ body: @escaping @Loop (KeycardDialogue, HeldKeycard) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let dialogue = KeycardDialogue(services, workflow, readerName: request.readerName, userID: nil)
        do throws(Failure) {
            return try await dialogue.run { card throws(Failure) in
                try await self.open(card, dialogue)
                try await self.readKey(of: card, dialogue, permission, known)
                self.workflow.progress(60)
                return try await body(dialogue, card)
            }
        } catch {
            var failure = error
            if error.code == .timedOut, card?.status?.pinTries == 0 {
                failure = Failure(
                    operation: .cardBlocked,
                    "The PIN of the card is blocked, and no PUK was entered in time: unblock the PIN (RESET_PIN,"
                        + " badgectl wallet unblock)"
                )
            } else if error.code == .cancelled, hasOnlyOtherCards {
                failure = Failure(
                    operation: .unsupportedCard,
                    "Cancelled: the card in the reader has no Keycard applet. Use a Keycard"
                )
            }
            failure.change = error.change
            throw failure
        }
    }

    /// Checks the binding before anything is asked, then opens the channel and asks for the PIN.
    private func open(_ card: HeldKeycard, _ dialogue: KeycardDialogue) async throws(Failure) {
        self.card = card
        guard card.info.isInitialized else { throw .notInitialised }
        guard let uid = card.info.keyUID else { throw .noKeys }
        keyUID = uid
        if request.body.kind == .authorize, let bindingKey, let account {
            try await bindings.checkConflict(bindingKey, account: account, keyUID: uid)
        } else if let binding {
            try await checkBinding()
            guard binding.keyUID == uid else {
                let words: Phrase =
                    "appKey and UUID are bound to another card: use that card, or send WALLET_UNBIND and"
                    + " WALLET_AUTHORIZE to bind this one"
                throw Failure(operation: .boundToOtherCard, words)
            }
            if card.info.generation == .pairing {
                guard try await dialogue.openWithKnownPairing(card) else {
                    let words: Phrase =
                        "This computer is not paired with the bound card any more: pair it again (RUN_WALLET"
                        + " with PAIR, badgectl wallet pair)"
                    throw Failure(operation: .notPaired, words)
                }
                try await dialogue.readStatus(card)
                try await dialogue.unlock(card)
                return
            }
        }
        try await dialogue.openChannel(card)
        try await dialogue.unlock(card)
    }

    /// Refuses to go on with a binding that was removed or replaced since the command came.
    private func checkBinding() async throws(Failure) {
        guard let bindingKey, let binding, request.body.kind != .authorize else { return }
        guard try await bindings.binding(bindingKey) == binding else {
            throw Failure(
                operation: .notBound,
                "The binding of appKey and UUID was removed or replaced meanwhile: send WALLET_AUTHORIZE, then start again"
            )
        }
    }

    private func readKey(
        of card: HeldKeycard,
        _ dialogue: KeycardDialogue,
        _ permission: AccountName?,
        _ known: NodeAccount?
    ) async throws(Failure) {
        guard let path = Self.path else { return }
        let key = KeyText(
            try await dialogue.step("EXPORT KEY", card, await card.applet.exportPublicKey(path))
        )
        publicKey = key
        // The user may have typed the PIN meanwhile.
        try await checkBinding()
        if let binding, request.body.kind != .authorize, binding.publicKey != key.description {
            // The duress wallet has the key UID of the main one, and other keys.
            let words: Phrase =
                "The card opened another wallet than the bound one, as its duress PIN does: use the main PIN"
            throw Failure(operation: .boundToOtherCard, words)
        }
        guard let known, let permission, let account else { return }
        try Self.check(known.authority(of: key, for: permission), permission, account, "the key of the card, \(key)")
    }

    /// Refuses a permission that the key of the bound card, or one key alone, cannot fulfil, before anything is asked.
    func check(_ permission: AccountName, of known: NodeAccount) throws(Failure) {
        guard let account else { return }
        if request.body.kind != .authorize, let text = binding?.publicKey, let key = try? KeyText(text, .publicKey) {
            let words: Phrase = "the key of the card, \(key)"
            return try Self.check(known.authority(of: key, for: permission), permission, account, words)
        }
        try Self.check(known.authority(for: permission), permission, account, "a key that a card can have")
    }

    private static func check(
        _ authority: NodeAccount.Authority,
        _ permission: AccountName,
        _ account: AccountName,
        _ key: Phrase
    ) throws(Failure) {
        switch authority {
        case .full: return
        case .partial:
            let words: Phrase =
                "The permission \(permission) of \(account) needs more keys than that of the card: name a"
                + " permission that this key alone fulfils"
            throw Failure(operation: .keyNotInAccount, words)
        case .missing:
            let words: Phrase =
                "The permission \(permission) of \(account) does not have \(key): add this key to it, or name another"
                + " permission"
            throw Failure(operation: .keyNotInAccount, words)
        }
    }

    /// Signs the digest of a request that was shown and accepted, until nodes accept the form of the signature.
    func signature(
        of shown: ShownRequest,
        _ dialogue: KeycardDialogue,
        _ card: HeldKeycard
    ) async throws(Failure) -> CompactSignature {
        guard let path = Self.path, let expected = publicKey.flatMap({ try? PublicKey($0.content) }) else {
            throw Failure(.cardFailed, "The card returned no key: start again")
        }
        workflow.workBegins()
        for _ in 0..<Self.maximumSignatures {
            if workflow.isCancelled { throw .cancelled }
            let made = try await dialogue.step(
                "SIGN",
                card,
                await card.applet.sign(shown.digest, with: path, expecting: expected)
            )
            let signature = CompactSignature(made.signature, recoveryID: made.recoveryID)
            if signature.isCanonical { return signature }
        }
        let words: Phrase =
            "In \(Self.maximumSignatures) tries, the card made no signature that nodes accept: start again"
        throw Failure(.signatureFailed, words, at: "SIGN")
    }

    /// Whether there are cards in readers, but no Keycard.
    private var hasOnlyOtherCards: Bool {
        let cards = services.registry.readers.filter { reader in
            reader.insertion != nil && (request.readerName ?? reader.name) == reader.name
        }
        return !cards.isEmpty
            && cards.allSatisfy { reader in
                if case .known(let profile) = reader.card { return !(profile is KeycardProfile) }
                return true
            }
    }
}
