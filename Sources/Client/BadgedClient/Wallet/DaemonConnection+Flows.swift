// SPDX-License-Identifier: Apache-2.0
public import Text

/// A workflow with a wallet card: `workflow` of RUN_WALLET, and its members.
public struct WalletFlow: Sendable, Equatable {
    /// The name, such as `SETUP_DEVICE`.
    public var name: String
    /// The members of RUN_WALLET that belong to this workflow alone.
    public var members: [JSON.Member]

    /// Any workflow; for those that this library does not know.
    public init(_ name: String, _ members: [JSON.Member] = []) { (self.name, self.members) = (name, members) }

    /// SETUP_DEVICE: gives a new card its PIN, PUK and keys, and registers it.
    ///
    /// - Parameters:
    ///   - words: how many words name the keys: 12, 15, 18, 21 or 24.
    ///   - generatesPUK: whether badged draws the PUK; otherwise the user is asked for one.
    ///   - hasDuressPIN: whether the user is asked for the duress PIN; otherwise badged draws one that nobody knows.
    ///   - hasPassphrase: whether the user is asked for a passphrase, without which the words restore another wallet.
    /// - Returns: the workflow, for `runWallet`.
    public static func setupDevice(
        words: Int = 12,
        generatesPUK: Bool = false,
        hasDuressPIN: Bool = false,
        hasPassphrase: Bool = false
    ) -> WalletFlow {
        WalletFlow("SETUP_DEVICE", count(words) + choices(generatesPUK, hasDuressPIN, hasPassphrase))
    }

    /// AUTHORIZE_DEVICE_WITH_MNEMONICS: loads the keys of words that the user types.
    ///
    /// - Parameters:
    ///   - words: how many words the user has: 12, 15, 18, 21 or 24.
    ///   - keyUID: the keys to which the words must belong; nil: any.
    ///   - generatesPUK: whether badged draws the PUK of a new card; otherwise the user is asked for one.
    ///   - hasDuressPIN: whether the user is asked for the duress PIN of a new card.
    ///   - hasPassphrase: whether a passphrase belongs to the words, for which the user is asked.
    /// - Returns: the workflow, for `runWallet`.
    public static func authorizeDeviceWithMnemonics(
        words: Int = 12,
        keyUID: String? = nil,
        generatesPUK: Bool = false,
        hasDuressPIN: Bool = false,
        hasPassphrase: Bool = false
    ) -> WalletFlow {
        let key = keyUID.map { [JSON.Member("keyUID", .string($0))] } ?? []
        return WalletFlow(
            "AUTHORIZE_DEVICE_WITH_MNEMONICS",
            count(words) + key + choices(generatesPUK, hasDuressPIN, hasPassphrase)
        )
    }

    /// RESET_PIN: changes the PIN. `withPUK`: the PIN is blocked, and the PUK sets a new one.
    public static func resetPIN(withPUK: Bool = false) -> WalletFlow {
        WalletFlow("RESET_PIN", withPUK ? [.init("puk", .bool(true))] : [])
    }

    /// ACTIVATE_USER: signs the challenge of an app.
    public static func activateUser(challenge: String) -> WalletFlow {
        WalletFlow("ACTIVATE_USER", [.init("challenge", .string(challenge))])
    }

    /// PERFORM_QR_ACTION: shows the payload of a QR code, and signs for it.
    public static func performQRAction(payload: String, signing content: SigningData.Content) -> WalletFlow {
        let member: JSON.Member =
            switch content {
            case .message(let text): .init("message", .string(text))
            case .typedData(let data): .init("typedData", data)
            case .preimage(let bytes): .init("preimage", .string(bytes))
            }
        return WalletFlow("PERFORM_QR_ACTION", [.init("payload", .string(payload)), member])
    }

    /// ADD_SESSION: makes the key of a session, and signs its limits. `spendingLimit` has decimal digits;
    /// `expirationTime` is in seconds since 1970.
    public static func addSession(spendingLimit: String, expirationTime: Int) -> WalletFlow {
        WalletFlow(
            "ADD_SESSION",
            [
                .init("spendingLimit", .string(spendingLimit)),
                .init("expirationTime", .number(String(expirationTime))),
            ]
        )
    }

    /// PAIR: pairs this computer with a 3.x card.
    public static let pair = WalletFlow("PAIR")

    /// UNPAIR: releases the pairing slot of this computer, and forgets the pairing.
    public static let unpair = WalletFlow("UNPAIR")

    /// UNPAIR with `others`: releases the pairing slots of all other computers, which must then pair again.
    public static let unpairOthers = WalletFlow("UNPAIR", [.init("others", .bool(true))])

    /// RESET_CARD: resets the card with these keys to its factory state; empty: the card without keys. Have the user
    /// type the key UID.
    public static func resetCard(keyUID: String) -> WalletFlow {
        WalletFlow("RESET_CARD", [.init("keyUID", .string(keyUID))])
    }

    /// GET_DEVICE_MNEMONICS: refused with `MNEMONICS_NOT_STORED`, because the words cannot be read from a card.
    public static let getDeviceMnemonics = WalletFlow("GET_DEVICE_MNEMONICS")

    private static func count(_ words: Int) -> [JSON.Member] {
        words == 12 ? [] : [.init("words", .number(String(words)))]
    }

    private static func choices(_ generatesPUK: Bool, _ hasDuressPIN: Bool, _ hasPassphrase: Bool) -> [JSON.Member] {
        [("generatePUK", generatesPUK), ("duressPin", hasDuressPIN), ("passphrase", hasPassphrase)]
            .filter(\.1).map { JSON.Member($0.0, .bool(true)) }
    }
}

/// The workflows with wallet cards. docs/protocol/wallet.md.
extension DaemonConnection {
    /// Runs a workflow with a wallet card from its start to its end: RUN_WALLET. A connection runs one workflow at
    /// a time. Cancelling the calling task cancels the workflow.
    ///
    /// - Parameters:
    ///   - flow: the workflow.
    ///   - userID: names the user in the messages; badged does not interpret it.
    ///   - tokenID: names the economy in the messages.
    ///   - reader: name of the reader to use; nil: the first with a wallet card.
    ///   - user: answers the questions.
    /// - Returns: how the workflow ended, also after a refusal or when the user has cancelled it.
    /// - Throws: `accessDenied` and other refusals, `workflowRunning`, the end of the connection, or `cancelled`.
    public func runWallet(
        _ flow: WalletFlow,
        userID: String? = nil,
        tokenID: String? = nil,
        reader: String? = nil,
        user: some WalletUser
    ) async throws(ClientError) -> FlowResult {
        try await runWorkflow(
            until: FlowMessage.self,
            user,
            start: await self.startWallet(flow, userID: userID, tokenID: tokenID, reader: reader)
        )
    }

    /// RUN_WALLET: starts a workflow with a wallet card. Its questions and its end, `FlowMessage`, are events.
    ///
    /// - Parameters:
    ///   - flow: the workflow.
    ///   - userID: names the user in the messages; badged does not interpret it.
    ///   - tokenID: names the economy in the messages.
    ///   - reader: name of the reader to use; nil: the first with a wallet card.
    ///   - status: whether badged sends STATUS during the workflow; nil: as before on this connection, at first true.
    /// - Returns: identifies a refusal.
    /// - Throws: when the command cannot be sent.
    @discardableResult
    public func startWallet(
        _ flow: WalletFlow,
        userID: String? = nil,
        tokenID: String? = nil,
        reader: String? = nil,
        status: Bool? = nil
    ) async throws(ClientError) -> RequestID {
        var members = [JSON.Member("workflow", .string(flow.name))] + flow.members
        if let userID { members.append(.init("userId", .string(userID))) }
        if let tokenID { members.append(.init("tokenId", .string(tokenID))) }
        if let reader { members.append(.init("reader", .string(reader))) }
        if let status { members.append(.init("status", .bool(status))) }
        return try await send("RUN_WALLET", members)
    }
}
