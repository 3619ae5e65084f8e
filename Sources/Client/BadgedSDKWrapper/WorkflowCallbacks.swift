// SPDX-License-Identifier: Apache-2.0
public import Text

/// Receives what a `WorkflowController` reports, on the callback queue of the controller. Each method has an empty
/// default.
public protocol WorkflowCallbacks: AnyObject {
    /// The controller has connected, and commands can be sent.
    func onStarted()
    /// AUTH: the online authentication has begun.
    func onAuthenticationStarted()
    /// AUTH with `error`: the online authentication was refused.
    func onAuthenticationStartFailed(error: String)
    /// AUTH with a result: the online authentication has ended.
    func onAuthenticationCompleted(authResult: AuthResult)
    /// CHANGE_PIN: the PIN change has begun.
    func onChangePinStarted()
    /// CHANGE_PIN with `success`: the PIN change has ended.
    func onChangePinCompleted(changePinResult: ChangePinResult)
    /// ACCESS_RIGHTS: the rights that the user is asked to grant. `error`: badged has refused the last choice.
    func onAccessRights(error: String?, accessRights: AccessRights?)
    /// CERTIFICATE: the service that asks.
    func onCertificate(certificateDescription: CertificateDescription)
    /// INSERT_CARD: a card is needed. `error`: why the present card cannot be used.
    func onInsertCard(error: String?)
    /// ENTER_PIN. `error`: why badged did not give the last value to the card.
    func onEnterPin(error: String?, reader: Reader)
    /// ENTER_NEW_PIN.
    func onEnterNewPin(error: String?, reader: Reader)
    /// ENTER_CAN.
    func onEnterCan(error: String?, reader: Reader)
    /// ENTER_PUK.
    func onEnterPuk(error: String?, reader: Reader)
    /// PAUSE: the workflow waits for `continueWorkflow()`.
    func onPause(cause: Cause)
    /// READER: a reader or its card has changed, or the answer to `getReader`. nil: the reader is gone;
    /// `onReaderDetached` follows with its name.
    func onReader(reader: Reader?)
    /// READER_LIST.
    func onReaderList(readers: [Reader]?)
    /// STATUS.
    func onStatus(workflowProgress: WorkflowProgress)
    /// INFO.
    func onInfo(versionInfo: VersionInfo)
    /// BAD_STATE: the command named by `error` is not possible now.
    func onBadState(error: String)
    /// INTERNAL_ERROR.
    func onInternalError(error: String)
    /// A command was not sent or not understood, or a message could not be read.
    func onWrapperError(error: WrapperError)

    // MARK: Additions of this library

    /// Names the reader of the `onReader(reader: nil)` just before.
    func onReaderDetached(name: String)
    /// A message that has no other callback.
    func onOtherMessage(name: String, message: JSON)
    /// The connection has ended, and with it a running workflow. `error` says why; nil after `stop()`. An end without
    /// `stop()` is reported by `onWrapperError`, too.
    func onDisconnected(error: WrapperError?)
}

extension WorkflowCallbacks {
    public func onStarted() {}
    public func onAuthenticationStarted() {}
    public func onAuthenticationStartFailed(error: String) {}
    public func onAuthenticationCompleted(authResult: AuthResult) {}
    public func onChangePinStarted() {}
    public func onChangePinCompleted(changePinResult: ChangePinResult) {}
    public func onAccessRights(error: String?, accessRights: AccessRights?) {}
    public func onCertificate(certificateDescription: CertificateDescription) {}
    public func onInsertCard(error: String?) {}
    public func onEnterPin(error: String?, reader: Reader) {}
    public func onEnterNewPin(error: String?, reader: Reader) {}
    public func onEnterCan(error: String?, reader: Reader) {}
    public func onEnterPuk(error: String?, reader: Reader) {}
    public func onPause(cause: Cause) {}
    public func onReader(reader: Reader?) {}
    public func onReaderList(readers: [Reader]?) {}
    public func onStatus(workflowProgress: WorkflowProgress) {}
    public func onInfo(versionInfo: VersionInfo) {}
    public func onBadState(error: String) {}
    public func onInternalError(error: String) {}
    public func onWrapperError(error: WrapperError) {}
    public func onReaderDetached(name: String) {}
    public func onOtherMessage(name: String, message: JSON) {}
    public func onDisconnected(error: WrapperError?) {}
}
