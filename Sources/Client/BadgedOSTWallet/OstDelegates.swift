// SPDX-License-Identifier: Apache-2.0

/// Takes the answer to a question of a workflow, once, from any thread. If it is released without an answer, the
/// workflow is cancelled.
public protocol OstBaseDelegate: AnyObject, Sendable {
    /// Cancels the workflow; `flowInterrupted` follows with this error.
    func cancelFlow(_ ostError: OstError)
    /// Cancels the workflow; `flowInterrupted` follows.
    func cancelFlow()
}

extension OstBaseDelegate {
    public func cancelFlow() { cancelFlow(OstError("", .userCanceled)) }
}

/// Takes the answer of the app's server to `registerDevice`.
public protocol OstDeviceRegisteredDelegate: OstBaseDelegate {
    /// - Parameter apiResponse: values that JSON has. `address` is at the top, in `device` or in `data`.
    func deviceRegistered(_ apiResponse: [String: Any])
}

/// Takes the consent of the user to `verifyData`.
public protocol OstValidateDataDelegate: OstBaseDelegate {
    func dataVerified()
}

/// Takes a PIN, or another secret of the card.
public protocol OstPinAcceptDelegate: OstBaseDelegate {
    /// The prefix is not used: it needs the platform of OST.
    func pinEntered(_ userPin: String, passphrasePrefix: String)
    func pinEntered(_ userPin: String)
}

extension OstPinAcceptDelegate {
    public func pinEntered(_ userPin: String, passphrasePrefix: String) { pinEntered(userPin) }
}

/// Takes words of a wallet.
public protocol OstMnemonicsAcceptDelegate: OstBaseDelegate {
    func mnemonicsEntered(_ mnemonics: [String])
}
