// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import Glibc
import HDWallet
import Keycard
import Server
import Store
import Text

/// What a client chooses for a card that is set up.
struct SetupChoices: Sendable {
    /// Whether badged draws the PUK of a new card: `generatePUK`.
    var drawsPUK = false
    /// Whether the user chooses the duress PIN of a new card: `duressPin`.
    var hasDuressPIN = false
    /// Whether a passphrase belongs to the words: `passphrase`.
    var hasPassphrase = false
}

/// SETUP_DEVICE: initialises a new card with PIN, PUK and keys, and registers it.
struct SetupDevice: WalletWorkflow {
    let wordCount: Int
    let choices: SetupChoices

    /// The number of words that are asked back.
    private static let checkedWords = 3

    func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity {
        let dialogue = flow.dialogue()
        let setup = CardSetup(dialogue, flow, choices)
        try await setup.requireStore()
        let device = try await dialogue.run { card throws(Failure) in
            try setup.checkKeys(of: card)
            try await setup.unlock(card)
            if card.info.keyUID == nil { try await makeKeys(setup, card) }
            return try await setup.readDevice(card)
        }
        return try await dialogue.telling { () throws(Failure) in try await register(device, flow) }
    }

    /// Lets the card draw the words, has the user write them down, and loads their keys.
    @Loop private func makeKeys(_ setup: CardSetup, _ card: HeldKeycard) async throws(Failure) {
        var words: PaperWallet
        if let known = setup.words, let owner = setup.wordsOwner, owner == card.identity {
            // The user has written them down and typed them for this card already.
            words = known
        } else {
            words = try await drawWords(setup, card)
            _ = try await setup.dialogue.ask(PaperWalletPrompt(words: words, userID: setup.flow.request.userID))
            _ = try await setup.dialogue.ask(
                WordsCheckPrompt(
                    words: words,
                    positions: words.randomPositions(Self.checkedWords),
                    userID: setup.flow.request.userID
                )
            )
            if choices.hasPassphrase { words = try await words.adding(passphrase: try await setup.askForPassphrase()) }
            setup.words = words
            setup.wordsOwner = card.identity
        }
        try await setup.load(words, card)
    }

    @Loop private func drawWords(_ setup: CardSetup, _ card: HeldKeycard) async throws(Failure) -> PaperWallet {
        try await setup.dialogue.step(
            "GENERATE MNEMONIC",
            card,
            await PaperWallet.derived(from: try await card.applet.generateMnemonic(words: wordCount))
        )
    }

    /// Has the app register the device.
    @Loop private func register(
        _ device: CardSetup.Device,
        _ flow: WalletFlow
    ) async throws(Failure) -> ContextEntity {
        let parameters = [
            JSON.Member("address", .string(device.address)), JSON.Member("api_signer_address", .string(device.signer)),
            JSON.Member("updated_timestamp", .number(String(time(nil)))), JSON.Member("status", .string("CREATED")),
        ]
        let response = try await flow.workflow.ask(
            RegisterDevicePrompt(parameters: parameters, userID: flow.request.userID)
        )
        guard Self.addresses(in: response).contains(device.address.lowercased()) else {
            throw Failure(
                .wrongDeviceAddress,
                "The app has registered another device than \(device.address): start again, and register this one"
            )
        }
        let entity = device.entity(flow, status: "REGISTERED")
        flow.workflow.session.push(WrittenMessage("REQUEST_ACKNOWLEDGED", flow.context, entity))
        return entity
    }

    /// The addresses in an answer of the app, in lower case: at its top, in `device`, or in `data`.
    private static func addresses(in response: JSON) -> [String] {
        let data = response["data"]
        let places = [response, response["device"], data, data?["device"]]
        return places.compactMap { $0?["address"]?.string?.lowercased() }
    }
}

/// AUTHORIZE_DEVICE_WITH_MNEMONICS: loads the keys of words that the user types.
struct AuthorizeDevice: WalletWorkflow {
    let wordCount: Int
    let choices: SetupChoices
    /// The keys that the words must belong to; nil: any.
    let keyUID: [UInt8]?

    func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity {
        let dialogue = flow.dialogue()
        let setup = CardSetup(dialogue, flow, choices)
        try await setup.requireStore()
        let words = try await askForWords(setup)
        setup.words = words
        let device = try await dialogue.run { card throws(Failure) in
            // The answer to SELECT has the key UID, so a wrong card is refused before its PIN is asked.
            if let uid = card.info.keyUID, uid != words.wallet.keyUID { throw .otherKeys(choices) }
            try await setup.unlock(card)
            if card.info.keyUID == nil { try await setup.load(words, card) }
            return try await setup.readDevice(card)
        }
        return device.entity(flow, status: "CREATED")
    }

    /// Asks for the words, and the passphrase, until they fit together and belong to the keys that were named.
    @Loop private func askForWords(_ setup: CardSetup) async throws(Failure) -> PaperWallet {
        let flow = setup.flow
        var error: Phrase?
        while true {
            let typed = try await flow.workflow.ask(
                WordsPrompt(count: wordCount, userID: flow.request.userID, error: error)
            )
            let passphrase = choices.hasPassphrase ? try await setup.askForPassphrase() : nil
            let words = try await PaperWallet.derived(from: typed, passphrase: passphrase)
            if keyUID == nil || keyUID == words.wallet.keyUID { return words }
            error = "The \(choices.wallet) are those of another wallet"
        }
    }
}

/// The steps that are common to setting up a card and restoring one.
@Loop final class CardSetup {
    let dialogue: KeycardDialogue
    let flow: WalletFlow
    private let choices: SetupChoices
    /// The words whose keys this workflow loads, once the user has confirmed them.
    var words: PaperWallet?
    /// The card for which the words were drawn.
    var wordsOwner: [UInt8]?
    /// The identity key of the card that got INIT from this workflow.
    private var initialized: PublicKey?

    /// The device that the card represents.
    struct Device: Sendable {
        let address: String
        let signer: String
        let keyUID: [UInt8]
        /// Whether this workflow has loaded the keys.
        let isNew: Bool

        @Loop func entity(_ flow: WalletFlow, status: String) -> ContextEntity {
            ContextEntity(
                type: "device",
                members: flow.userMembers + [
                    JSON.Member("address", .string(address)), JSON.Member("api_signer_address", .string(signer)),
                    JSON.Member("status", .string(status)), JSON.Member("keyUID", .string(Hex.encode(keyUID))),
                    JSON.Member("created", .bool(isNew)),
                ]
            )
        }
    }

    init(_ dialogue: KeycardDialogue, _ flow: WalletFlow, _ choices: SetupChoices) {
        self.dialogue = dialogue
        self.flow = flow
        self.choices = choices
    }

    /// Fails before any card is used if nothing can be kept.
    func requireStore() async throws(Failure) {
        _ = try await flow.services.store.required()
    }

    /// Opens a card with its PIN; a new card gets PIN and PUK first.
    func unlock(_ card: HeldKeycard) async throws(Failure) {
        if card.info.isInitialized {
            let isOwn = try await hasInitialized(card)
            // A user who believes in a duress PIN that the card does not have is in danger.
            if choices.hasDuressPIN, !isOwn { throw .hasPIN }
            try await dialogue.openChannel(card)
            try await dialogue.unlock(card)
            if isOwn { dialogue.change = .initialized }
        } else {
            try await initialize(card)
        }
    }

    /// Whether this card got INIT from this workflow. One without a certificate cannot prove it.
    private func hasInitialized(_ card: HeldKeycard) async throws(Failure) -> Bool {
        guard let initialized else { return false }
        if let certificate = card.info.certificate { return certificate.identity == initialized }
        return try await dialogue.checkCertificate(card)?.identity == initialized
    }

    /// Refuses a card that has other keys than SETUP_DEVICE makes.
    func checkKeys(of card: HeldKeycard) throws(Failure) {
        guard let uid = card.info.keyUID, uid != words?.wallet.keyUID else { return }
        if choices.hasPassphrase { throw .hasKeys }
        // The user has written down words, which do not restore this card.
        if words != nil { throw .otherKeys(choices) }
    }

    private func initialize(_ card: HeldKeycard) async throws(Failure) {
        let identity: PublicKey?
        switch card.info.generation {
        case .certificate:
            // A foreign card is refused before the user types a PIN for it.
            try await dialogue.step("OPEN SECURE CHANNEL", card, await card.applet.openWithCertificate())
            identity = card.info.certificate?.identity
        case .pairing:
            // This also shows the version, which decides the form of INIT.
            identity = try await dialogue.checkCertificate(card)?.identity
            card.profile.info = await card.applet.info
        }
        guard !choices.hasDuressPIN || card.info.version != KeycardVersion.v3_0.rawValue else { throw .noDuressPIN }
        let pin = KeptDigits(try await dialogue.ask(.newPIN, card))
        let duressPIN =
            choices.hasDuressPIN ? SecretBox(try await dialogue.ask(.duressPIN(besides: pin), card)) : nil
        let puk = SecretBox(try await newPUK(card))
        let newPIN = SecretBox(pin.digits.clone())
        initialized = identity
        try await dialogue.step("INIT", card, changing: \.change, to: .initializing) {
            () async throws(KeycardError) in
            guard let pin = newPIN.take(), let puk = puk.take() else { throw .wrongForm }
            try await card.applet.initialize(pin: pin, puk: puk, duressPIN: duressPIN)
        }
        dialogue.change = .initialized
        card.profile.info = await card.applet.info
        guard card.info.isSupported else { throw .otherVersion(card.info) }
        try await dialogue.openChannel(card)
        // The user has typed this PIN for this card and this insertion, so the card must accept it.
        guard try await dialogue.verify(pin.digits.clone(), card) else {
            throw Failure(.malformed("it refuses the PIN that it has taken"), at: "INIT")
        }
    }

    /// Asks for the PUK of a new card, or generates and shows it.
    private func newPUK(_ card: HeldKeycard) async throws(Failure) -> Secret {
        guard choices.drawsPUK else { return try await dialogue.ask(.newPUK, card) }
        let drawn = try compute("new PUK", KeptDigits(try KeycardRandom.system.digits(KeycardParameters.pukCount)))
        _ = try await dialogue.ask(PUKPrompt(puk: drawn, lease: card.lease, userID: flow.request.userID))
        return drawn.digits.clone()
    }

    /// Asks for the passphrase that belongs to the words.
    func askForPassphrase() async throws(Failure) -> SecretBox {
        try await dialogue.ask(PassphrasePrompt(userID: flow.request.userID))
    }

    /// Loads the keys of words into a card without keys, and compares what the card derives.
    func load(_ words: PaperWallet, _ card: HeldKeycard) async throws(Failure) {
        // Kept before LOAD KEY: if its answer is lost, the key UID still identifies the public key that the card must
        // have.
        try await flow.services.wallets.keep(words.wallet.firstKey, of: words.wallet.keyUID)
        let unknown = KeyChange.unknown(card.identity)
        let uid = try await dialogue.step("LOAD KEY", card, changing: \.keyChange, to: unknown) {
            () async throws(KeycardError) in
            try await card.applet.loadWallet(seed: words.seed.clone())
        }
        dialogue.keyChange = .loaded(card.identity)
        card.profile.info.keyUID = uid
    }

    /// Reads the device, and checks that the card derives what BIP-32 derives, as far as badged knows the wallet.
    func readDevice(_ card: HeldKeycard) async throws(Failure) -> Device {
        guard let uid = card.info.keyUID else { throw .noKeys }
        let key = try await exportKey(.firstEthereumAddress, card)
        let known = try await flow.services.wallets.firstKey(of: uid)
        let isOwn = dialogue.keyChange.map { $0.card == card.identity } ?? false && words?.wallet.keyUID == uid
        if let expected = words?.wallet.keyUID == uid ? words?.wallet.firstKey : known, key != expected {
            if isOwn {
                let unknown = KeyChange.unknown(card.identity)
                try await dialogue.step("REMOVE KEY", card, changing: \.keyChange, to: unknown) {
                    () async throws(KeycardError) in
                    try await card.applet.removeKey()
                }
                dialogue.keyChange = nil
                card.profile.info.keyUID = nil
            }
            throw Failure(.wrongWallet, at: "EXPORT KEY")
        }
        // Also after an answer to LOAD KEY that was lost.
        if isOwn { dialogue.keyChange = .loaded(card.identity) }
        if known == nil, let wallet = words?.wallet, wallet.keyUID == uid {
            try await flow.services.wallets.keep(wallet.firstKey, of: uid)
        }
        let signer = try await exportKey(.ethereumSigner, card)
        return Device(
            address: EthereumAddress(key).description,
            signer: EthereumAddress(signer).description,
            keyUID: uid,
            isNew: isOwn
        )
    }

    private func exportKey(_ path: DerivationPath, _ card: HeldKeycard) async throws(Failure) -> PublicKey {
        try await dialogue.step("EXPORT KEY", card, await card.applet.exportPublicKey(path))
    }
}

extension SetupChoices {
    /// What a wallet is restored from.
    fileprivate var wallet: Phrase { hasPassphrase ? Phrase("words and the passphrase") : Phrase("words") }
}

extension Failure {
    fileprivate static let hasPIN = Failure(
        .deviceAlreadySet,
        "The card has a PIN, and the duress PIN is set together with the PIN: reset the card first (RESET_CARD, badgectl"
            + " wallet reset-card), or set it up without a duress PIN"
    )
    fileprivate static let hasKeys = Failure(
        .deviceAlreadySet,
        "The card has keys, and a passphrase takes part when they are made: reset the card first (RESET_CARD, badgectl"
            + " wallet reset-card), or set it up without a passphrase"
    )
    fileprivate static func otherKeys(_ choices: SetupChoices) -> Failure {
        Failure(
            .differentOwnerDevice,
            "The card has other keys than the \(choices.wallet): use another card, or destroy the keys of this one"
                + " (RESET_CARD, badgectl wallet reset-card)"
        )
    }
    fileprivate static let noDuressPIN = Failure(
        .unsupportedCard,
        "A Keycard of version 3.0 has no duress PIN: set it up without, or use a card of version 3.1 or 4.0"
    )
}
