// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
public import Dispatch
import Glibc
import Text

/// The entry point of an app: an app that imports this module instead of `OstWalletSdk` uses badged. It uses the
/// default socket, and calls back on the main queue.
public let OstWalletSdk = OstWorkflows()

/// Starts workflows with wallet cards. Each runs on a connection of its own, and reports to its delegate.
///
/// Every call returns at once. `flowComplete` or `flowInterrupted` follows, also if badged cannot be reached.
public final class OstWorkflows: Sendable {
    private let socketPath: String?
    private let queue: DispatchQueue
    private let insertion: VirtualInsertion?

    /// - Parameters:
    ///   - socketPath: the socket of badged; nil: the default of this system.
    ///   - callbackQueue: the serial queue on which callbacks run. The main queue needs `dispatchMain()` or a run loop; an
    ///     app without these passes another queue.
    ///   - virtualCard: a card for the virtual reader, which is inserted when a card is needed; for tests.
    public init(
        socketPath: String? = nil,
        callbackQueue: DispatchQueue = .main,
        virtualCard: VirtualCardInsertion? = nil
    ) {
        self.socketPath = socketPath
        queue = callbackQueue
        insertion = virtualCard.map(VirtualInsertion.init)
    }

    /// Has no effect: badged does not contact the platform of OST.
    public func initialize(apiEndPoint: String) throws {}

    // MARK: Workflows

    /// Gives a new card its PIN and keys, and registers it.
    public func setupDevice(userId: String, tokenId: String, delegate: any OstWorkFlowCallbackDelegate) {
        run(.setupDevice, .setupDevice(generatesPUK: true), userId, tokenId, delegate)
    }

    /// Signs a challenge of the app with the card.
    ///
    /// - Parameters:
    ///   - userId: the user.
    ///   - userPin: the PIN of the card.
    ///   - passphrasePrefix: not used.
    ///   - spendingLimit: a part of the challenge.
    ///   - expireAfterInSecs: a part of the challenge.
    ///   - challenge: the text to sign; nil: a text with the other parameters.
    ///   - delegate: gets the callbacks.
    public func activateUser(
        userId: String,
        userPin: String,
        passphrasePrefix: String,
        spendingLimit: String,
        expireAfterInSecs: Double,
        challenge: String? = nil,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        let text =
            challenge
            ?? "Activate the user \(userId): spending limit \(spendingLimit), sessions of \(expireAfterInSecs) s"
        run(.activateUser, .activateUser(challenge: text), userId, nil, delegate, GivenValues(pin: secret(userPin)))
    }

    /// Makes the key of a session. Its delegate must be an `OstCardDelegate`, which keeps the key.
    public func addSession(
        userId: String,
        spendingLimit: String,
        expireAfterInSecs: Double,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        // badged passes the key on when the card has signed: too late to find out that nobody keeps it.
        guard delegate is any OstCardDelegate else {
            let text = "the app does not keep keys of sessions: its delegate is not an OstCardDelegate"
            return DelegateUser(delegate, queue, .addSession).refuse(.unsupportedWorkflow, text)
        }
        let seconds = Double(time(nil)) + expireAfterInSecs
        let end = Int(exactly: seconds.rounded(.down)) ?? -1
        run(.addSession, .addSession(spendingLimit: spendingLimit, expirationTime: end), userId, nil, delegate)
    }

    /// Shows what a QR code asks for, and signs for it.
    ///
    /// - Parameters:
    ///   - userId: the user.
    ///   - payload: the text of the QR code.
    ///   - signing: what the card signs; nil: `payload`, as a signed message of Ethereum.
    ///   - delegate: gets the callbacks.
    public func performQRAction(
        userId: String,
        payload: String,
        signing: SigningData.Content? = nil,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        let flow = WalletFlow.performQRAction(payload: payload, signing: signing ?? .message(payload))
        run(.performQRAction, flow, userId, nil, delegate)
    }

    /// `flowInterrupted` with `mnemonicsNotStored`: the words cannot be read from a card.
    public func getDeviceMnemonics(userId: String, delegate: any OstWorkFlowCallbackDelegate) {
        run(.getDeviceMnemonics, .getDeviceMnemonics, userId, nil, delegate)
    }

    /// Loads the keys of 12 to 24 words into a card.
    public func authorizeCurrentDeviceWithMnemonics(
        userId: String,
        mnemonics: [String],
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        run(
            .authorizeDeviceWithMnemonics,
            .authorizeDeviceWithMnemonics(words: mnemonics.count, generatesPUK: true),
            userId,
            nil,
            delegate,
            GivenValues(words: DelegateUser.secret(mnemonics))
        )
    }

    /// Changes the PIN of the card. The prefix is not used.
    public func resetPin(
        userId: String,
        passPhrasePrefix: String,
        oldUserPin: String,
        newUserPin: String,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        // Without OstCardDelegate badged cannot ask for another new PIN when the card has accepted the old one.
        let isPIN = newUserPin.utf8.count == 6 && newUserPin.utf8.allSatisfy { (0x30...0x39).contains($0) }
        guard isPIN || delegate is any OstCardDelegate else {
            return DelegateUser(delegate, queue, .resetPin).refuse(
                .pinValidationFailed,
                "the new PIN must have 6 digits"
            )
        }
        let given = GivenValues(pin: secret(oldUserPin), newPIN: secret(newUserPin))
        run(.resetPin, .resetPIN(), userId, nil, delegate, given)
    }

    /// Signs the request to revoke a device.
    public func revokeDevice(
        userId: String,
        deviceAddressToRevoke: String,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        let payload = JSON.object([
            .init("dd", .string("RD")), .init("ddv", .string("2.0.0")),
            .init("d", .object([.init("da", .string(deviceAddressToRevoke))])),
        ])
        let text = String(decoding: payload.bytes, as: UTF8.self)
        let flow = WalletFlow.performQRAction(payload: text, signing: .message(text))
        run(.revokeDevice, WalletFlow("REVOKE_DEVICE", flow.members), userId, nil, delegate)
    }

    /// `flowInterrupted` with `unsupportedWorkflow`: it needs the platform of OST.
    public func initiateDeviceRecovery(
        userId: String,
        recoverDeviceAddress: String,
        userPin: String,
        passphrasePrefix: String,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        refuse(.initiateDeviceRecovery, userId, delegate)
    }

    /// `flowInterrupted` with `unsupportedWorkflow`: it needs the platform of OST.
    public func abortDeviceRecovery(
        userId: String,
        userPin: String,
        passphrasePrefix: String,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        refuse(.abortDeviceRecovery, userId, delegate)
    }

    /// `flowInterrupted` with `unsupportedWorkflow`: it needs the platform of OST.
    public func logoutAllSessions(userId: String, delegate: any OstWorkFlowCallbackDelegate) {
        refuse(.logoutAllSessions, userId, delegate)
    }

    /// `flowInterrupted` with `unsupportedWorkflow`: a card has no biometrics.
    public func updateBiometricPreference(
        userId: String,
        enable: Bool,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        refuse(.updateBiometricPreference, userId, delegate)
    }

    private func refuse(_ type: OstWorkflowType, _ userId: String, _ delegate: any OstWorkFlowCallbackDelegate) {
        run(type, WalletFlow(type.rawValue), userId, nil, delegate)
    }

    private func secret(_ pin: String) -> SecretBox { SecretBox(Secret(pin.utf8)) }

    private func run(
        _ type: OstWorkflowType,
        _ flow: WalletFlow,
        _ userId: String,
        _ tokenId: String?,
        _ delegate: any OstWorkFlowCallbackDelegate,
        _ given: GivenValues = GivenValues()
    ) {
        let user = DelegateUser(delegate, queue, type, given, insertion)
        let path = socketPath ?? SocketPath.standard
        Task { [insertion] in
            do throws(ClientError) {
                let badged = try await DaemonConnection.connect(to: path, keepsEvents: false)
                insertion?.use(badged)
                let result = try await badged.runWallet(flow, userID: userId, tokenID: tokenId, user: user)
                badged.close()
                user.report(.success(result))
            } catch {
                user.report(.failure(error))
            }
        }
    }
}
