// SPDX-License-Identifier: Apache-2.0

/// The entry point of an app. An app that imports this module instead of `OstWalletSdk` uses badged.
public enum OstWalletSdk {
    /// What the functions use: the default socket, and callbacks on the main queue.
    public static let workflows = OstWorkflows()

    /// Has no effect: badged does not contact the platform of OST.
    public static func initialize(apiEndPoint: String) throws {}

    public static func setupDevice(userId: String, tokenId: String, delegate: any OstWorkFlowCallbackDelegate) {
        workflows.setupDevice(userId: userId, tokenId: tokenId, delegate: delegate)
    }

    public static func activateUser(
        userId: String,
        userPin: String,
        passphrasePrefix: String,
        spendingLimit: String,
        expireAfterInSecs: Double,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        workflows.activateUser(
            userId: userId,
            userPin: userPin,
            passphrasePrefix: passphrasePrefix,
            spendingLimit: spendingLimit,
            expireAfterInSecs: expireAfterInSecs,
            delegate: delegate
        )
    }

    public static func addSession(
        userId: String,
        spendingLimit: String,
        expireAfterInSecs: Double,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        workflows.addSession(
            userId: userId,
            spendingLimit: spendingLimit,
            expireAfterInSecs: expireAfterInSecs,
            delegate: delegate
        )
    }

    public static func performQRAction(userId: String, payload: String, delegate: any OstWorkFlowCallbackDelegate) {
        workflows.performQRAction(userId: userId, payload: payload, delegate: delegate)
    }

    public static func getDeviceMnemonics(userId: String, delegate: any OstWorkFlowCallbackDelegate) {
        workflows.getDeviceMnemonics(userId: userId, delegate: delegate)
    }

    public static func authorizeCurrentDeviceWithMnemonics(
        userId: String,
        mnemonics: [String],
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        workflows.authorizeCurrentDeviceWithMnemonics(userId: userId, mnemonics: mnemonics, delegate: delegate)
    }

    public static func resetPin(
        userId: String,
        passPhrasePrefix: String,
        oldUserPin: String,
        newUserPin: String,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        workflows.resetPin(
            userId: userId,
            passPhrasePrefix: passPhrasePrefix,
            oldUserPin: oldUserPin,
            newUserPin: newUserPin,
            delegate: delegate
        )
    }

    public static func revokeDevice(
        userId: String,
        deviceAddressToRevoke: String,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        workflows.revokeDevice(userId: userId, deviceAddressToRevoke: deviceAddressToRevoke, delegate: delegate)
    }

    public static func initiateDeviceRecovery(
        userId: String,
        recoverDeviceAddress: String,
        userPin: String,
        passphrasePrefix: String,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        workflows.initiateDeviceRecovery(
            userId: userId,
            recoverDeviceAddress: recoverDeviceAddress,
            userPin: userPin,
            passphrasePrefix: passphrasePrefix,
            delegate: delegate
        )
    }

    public static func abortDeviceRecovery(
        userId: String,
        userPin: String,
        passphrasePrefix: String,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        workflows.abortDeviceRecovery(
            userId: userId,
            userPin: userPin,
            passphrasePrefix: passphrasePrefix,
            delegate: delegate
        )
    }

    public static func logoutAllSessions(userId: String, delegate: any OstWorkFlowCallbackDelegate) {
        workflows.logoutAllSessions(userId: userId, delegate: delegate)
    }

    public static func updateBiometricPreference(
        userId: String,
        enable: Bool,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        workflows.updateBiometricPreference(userId: userId, enable: enable, delegate: delegate)
    }
}

/// The name of the entry point in the first versions of the SDK.
public typealias OstSdk = OstWalletSdk

extension OstWalletSdk {
    // MARK: Names of the first versions

    public static func activateUser(
        userId: String,
        userPin: String,
        passphrasePrefix: String,
        spendingLimitInWei: String,
        expireAfterInSec: Double,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        activateUser(
            userId: userId,
            userPin: userPin,
            passphrasePrefix: passphrasePrefix,
            spendingLimit: spendingLimitInWei,
            expireAfterInSecs: expireAfterInSec,
            delegate: delegate
        )
    }

    public static func addSession(
        userId: String,
        spendingLimitInWei: String,
        expireAfterInSec: Double,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        addSession(
            userId: userId,
            spendingLimit: spendingLimitInWei,
            expireAfterInSecs: expireAfterInSec,
            delegate: delegate
        )
    }

    public static func perform(userId: String, payload: String, delegate: any OstWorkFlowCallbackDelegate) {
        performQRAction(userId: userId, payload: payload, delegate: delegate)
    }

    public static func getPaperWallet(userId: String, delegate: any OstWorkFlowCallbackDelegate) {
        getDeviceMnemonics(userId: userId, delegate: delegate)
    }

    public static func addDeviceUsingMnemonics(
        userId: String,
        mnemonics: [String],
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        authorizeCurrentDeviceWithMnemonics(userId: userId, mnemonics: mnemonics, delegate: delegate)
    }

    public static func resetPin(
        userId: String,
        passphrasePrefix: String,
        oldUserPin: String,
        newUserPin: String,
        delegate: any OstWorkFlowCallbackDelegate
    ) {
        resetPin(
            userId: userId,
            passPhrasePrefix: passphrasePrefix,
            oldUserPin: oldUserPin,
            newUserPin: newUserPin,
            delegate: delegate
        )
    }
}
