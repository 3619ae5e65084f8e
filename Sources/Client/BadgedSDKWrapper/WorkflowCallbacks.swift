// SPDX-License-Identifier: Apache-2.0
public import Text
import Wire

/// What a `WorkflowController` tells; all are called on its callback queue. Each has an empty default.
public protocol WorkflowCallbacks: AnyObject {
    /// The connection stands: commands are taken.
    func onStarted()
    /// AUTH: the online authentication runs.
    func onAuthenticationStarted()
    /// AUTH with `error`: it was not even begun.
    func onAuthenticationStartFailed(error: String)
    /// AUTH with a result: it is over.
    func onAuthenticationCompleted(authResult: AuthResult)
    /// CHANGE_PIN: the PIN change runs.
    func onChangePinStarted()
    /// CHANGE_PIN with `success`: it is over.
    func onChangePinCompleted(changePinResult: ChangePinResult)
    /// ACCESS_RIGHTS: what the service wants to read, for the user to agree to. `error`: the last choice was refused.
    func onAccessRights(error: String?, accessRights: AccessRights?)
    /// CERTIFICATE: who the service is.
    func onCertificate(certificateDescription: CertificateDescription)
    /// INSERT_CARD: a card is needed. `error`: why the one that is there cannot be used.
    func onInsertCard(error: String?)
    /// ENTER_PIN. `error`: the last value was not even given to the card.
    func onEnterPin(error: String?, reader: Reader)
    /// ENTER_NEW_PIN.
    func onEnterNewPin(error: String?, reader: Reader)
    /// ENTER_CAN.
    func onEnterCan(error: String?, reader: Reader)
    /// ENTER_PUK.
    func onEnterPuk(error: String?, reader: Reader)
    /// PAUSE: go on with `continueWorkflow()` when the cause is mended.
    func onPause(cause: Cause)
    /// READER: a reader or its card has changed, or the answer to `getReader`; nil for a reader that is not there, of
    /// which `onReaderDetached` tells the name.
    func onReader(reader: Reader?)
    /// READER_LIST.
    func onReaderList(readers: [Reader]?)
    /// STATUS.
    func onStatus(workflowProgress: WorkflowProgress)
    /// INFO.
    func onInfo(versionInfo: VersionInfo)
    /// BAD_STATE: `error` is the command that is not possible now.
    func onBadState(error: String)
    /// INTERNAL_ERROR.
    func onInternalError(error: String)
    /// A command that was not sent or not understood, or a message that cannot be.
    func onWrapperError(error: WrapperError)

    // MARK: Of this library alone

    /// The reader of the `onReader(reader: nil)` just before.
    func onReaderDetached(name: String)
    /// A message for which there is no callback.
    func onOtherMessage(name: String, message: JSON)
    /// The connection has ended, by `stop()` (nil) or by what `error` says; a running workflow ended with it. An end
    /// that nobody asked for is an `onWrapperError` as well.
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
