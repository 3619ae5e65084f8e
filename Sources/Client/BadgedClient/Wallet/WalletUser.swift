// SPDX-License-Identifier: Apache-2.0
public import Text

/// Answers the questions of `runWallet` and of the operations with an account, such as `transfer`.
///
/// The defaults agree to nothing and show nothing: they cancel the workflow.
public protocol WalletUser: CardUser {
    /// WALLET_REQUEST: shows the user what an account signs. Returns true to agree, false to cancel.
    func agree(to request: WalletRequest) async -> Bool

    /// VERIFY_DATA: shows the user what the card signs. Returns true to agree, false to cancel.
    func verify(_ data: DataToVerify) async -> Bool

    /// REGISTER_DEVICE: registers the device at the server of the app. Returns the answer of the server, which has the
    /// same address, or nil to cancel.
    func register(_ device: DeviceRegistration) async -> JSON?

    /// SHOW_PAPER_WALLET: shows the words of a new wallet, once. Returns true when the user has written them down,
    /// false to cancel; then the card gets no keys.
    func show(_ wallet: PaperWallet) async -> Bool

    /// ENTER_WORDS: returns words with spaces between them, or nil to cancel. They are sent once and wiped.
    func words(_ question: WordsQuestion) async -> SecretBox?

    /// ENTER_PASSPHRASE: returns the passphrase that belongs to the words, 1 to 256 printable ASCII characters, or nil to
    /// cancel. Have the user type it twice: another one makes another wallet.
    func passphrase(_ question: PassphraseQuestion) async -> SecretBox?

    /// SHOW_PUK: shows the PUK that badged has drawn for a new card, once. Returns true when the user has written it
    /// down, false to cancel; then the card stays new.
    func show(_ puk: NewPUK) async -> Bool

    /// SHOW_SESSION_KEY: keeps the private key of a new session, which is shown once. Returns true when it is kept.
    func keep(_ key: SessionKey) async -> Bool
}

extension WalletUser {
    public func agree(to request: WalletRequest) async -> Bool { false }
    public func verify(_ data: DataToVerify) async -> Bool { false }
    /// Registers the device at no server: only badged stores it.
    public func register(_ device: DeviceRegistration) async -> JSON? {
        device.error == nil ? device.apiParams : nil
    }
    public func show(_ wallet: PaperWallet) async -> Bool { false }
    public func words(_ question: WordsQuestion) async -> SecretBox? { nil }
    public func passphrase(_ question: PassphraseQuestion) async -> SecretBox? { nil }
    public func show(_ puk: NewPUK) async -> Bool { false }
    public func keep(_ key: SessionKey) async -> Bool { false }
}

/// A `WalletUser` made of closures, for programs that sign.
public struct WalletClosures: WalletUser {
    private let onSecret: @Sendable (SecretQuestion) async -> SecretBox?
    private let onRequest: @Sendable (WalletRequest) async -> Bool
    private let onData: @Sendable (DataToVerify) async -> Bool
    private let onInsertCard: @Sendable (_ error: String?, _ reader: String?) async -> Void

    /// - Parameters:
    ///   - secret: returns the PIN, PUK, new PIN, new PUK, duress PIN or pairing password; nil cancels.
    ///   - request: whether the user agrees to what an account signs; the default cancels.
    ///   - data: whether the user agrees to what a workflow signs; the default cancels.
    ///   - insertCard: called when a card is needed.
    public init(
        secret: @escaping @Sendable (SecretQuestion) async -> SecretBox?,
        request: @escaping @Sendable (WalletRequest) async -> Bool = { _ in false },
        data: @escaping @Sendable (DataToVerify) async -> Bool = { _ in false },
        insertCard: @escaping @Sendable (_ error: String?, _ reader: String?) async -> Void = { _, _ in }
    ) {
        onSecret = secret
        onRequest = request
        onData = data
        onInsertCard = insertCard
    }

    public func answer(_ question: SecretQuestion) async -> SecretBox? { await onSecret(question) }
    public func agree(to request: WalletRequest) async -> Bool { await onRequest(request) }
    public func verify(_ data: DataToVerify) async -> Bool { await onData(data) }
    public func insertCard(error: String?, reader: String?) async { await onInsertCard(error, reader) }
}

/// A question to a `WalletUser` that is answered with yes or no.
protocol WalletPrompt: Question where User == any WalletUser {
    /// The command that means yes. No cancels the workflow.
    static var consent: String { get }
    func isAccepted(by user: any WalletUser) async -> Bool
}

extension WalletPrompt {
    static var consent: String { "ACCEPT" }

    func answer(by user: any WalletUser, after _: Submission?) async -> Answer? {
        await isAccepted(by: user) ? Answer(command: Self.consent) : nil
    }
}
