// SPDX-License-Identifier: Apache-2.0

/// Receives what a workflow reports and asks, on the callback queue. The names are those of the OST Wallet SDK.
public protocol OstWorkFlowCallbackDelegate: AnyObject {
    /// The app registers the device at its own server, and passes the answer of the server to `delegate`.
    ///
    /// - Parameters:
    ///   - apiParams: `address`, `api_signer_address`, `updated_timestamp` and `status` of the device.
    ///   - delegate: takes the answer, which must have the same address.
    func registerDevice(_ apiParams: [String: Any], delegate: any OstDeviceRegisteredDelegate)

    /// The user looks at what the card will sign.
    func verifyData(
        workflowContext: OstWorkflowContext,
        ostContextEntity: OstContextEntity,
        delegate: any OstValidateDataDelegate
    )

    /// The card needs its PIN.
    func getPin(_ userId: String, delegate: any OstPinAcceptDelegate)

    /// The PIN was wrong or had the wrong form. The card needs another one.
    func invalidPin(_ userId: String, delegate: any OstPinAcceptDelegate)

    /// The card has accepted the PIN.
    func pinValidated(_ userId: String)

    /// The words of a new wallet. They are passed on once, before the card gets its keys, and only to an app that
    /// conforms to `OstCardDelegate`, which asks them back.
    func showPaperWallet(mnemonics: [String])

    /// The server of the app has registered the device.
    func requestAcknowledged(workflowContext: OstWorkflowContext, ostContextEntity: OstContextEntity)

    /// The workflow has reached its end.
    func flowComplete(workflowContext: OstWorkflowContext, ostContextEntity: OstContextEntity)

    /// The workflow has failed or was cancelled. `error` says why.
    func flowInterrupted(workflowContext: OstWorkflowContext, error: OstError)
}
