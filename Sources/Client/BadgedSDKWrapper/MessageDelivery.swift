// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
package import Text

/// Calls the callback of each message. docs/protocol.md, Messages.
extension JSON {
    /// Whether this is ENTER_PIN, ENTER_CAN, ENTER_NEW_PIN or ENTER_PUK.
    var isQuestion: Bool { self["msg"]?.string?.hasPrefix("ENTER_") ?? false }

    package func deliver(to callbacks: any WorkflowCallbacks) {
        let name = self["msg"]?.string ?? ""
        let error = self["error"]?.string
        func fail(_ text: String) {
            callbacks.onWrapperError(error: WrapperError(msg: name, error: text))
        }
        switch name {
        case "AUTH": deliverAuthentication(to: callbacks, error)
        case "CHANGE_PIN":
            if let success = self["success"]?.bool {
                let reason = self["reason"]?.string
                callbacks.onChangePinCompleted(changePinResult: ChangePinResult(success: success, reason: reason))
            } else if let error {
                fail(error)
            } else {
                callbacks.onChangePinStarted()
            }
        case "ACCESS_RIGHTS": callbacks.onAccessRights(error: error, accessRights: AccessRights(self))
        case "CERTIFICATE":
            guard let description = CertificateDescription(self) else {
                return fail("Missing or invalid certificateDescription")
            }
            callbacks.onCertificate(certificateDescription: description)
        case "INSERT_CARD": callbacks.onInsertCard(error: error)
        case "ENTER_PIN", "ENTER_NEW_PIN", "ENTER_CAN", "ENTER_PUK":
            guard let reader = self["reader"].flatMap(Reader.init) else { return fail("Missing reader object") }
            switch name {
            case "ENTER_PIN": callbacks.onEnterPin(error: error, reader: reader)
            case "ENTER_NEW_PIN": callbacks.onEnterNewPin(error: error, reader: reader)
            case "ENTER_CAN": callbacks.onEnterCan(error: error, reader: reader)
            default: callbacks.onEnterPuk(error: error, reader: reader)
            }
        case "PAUSE":
            guard let text = self["cause"]?.string else { return fail("Missing cause object") }
            guard let cause = Cause(rawValue: text) else { return fail("Failed to map cause \"\(text)\" to Cause") }
            callbacks.onPause(cause: cause)
        case "READER":
            if let error { return fail(error) }
            guard let reader = Reader(self) else { return fail("Missing name in message") }
            callbacks.onReader(reader: reader.attached ? reader : nil)
            if !reader.attached { callbacks.onReaderDetached(name: reader.name) }
        case "READER_LIST":
            // API level 1 has the list under `reader`.
            callbacks.onReaderList(readers: (self["readers"] ?? self["reader"])?.array?.compactMap(Reader.init))
        case "STATUS": callbacks.onStatus(workflowProgress: WorkflowProgress(self))
        case "INFO":
            guard let info = VersionInfo(self) else { return fail("Missing VersionInfo in message") }
            callbacks.onInfo(versionInfo: info)
        case "BAD_STATE": callbacks.onBadState(error: error ?? "Unknown bad state")
        case "INTERNAL_ERROR": callbacks.onInternalError(error: error ?? "Unknown internal error")
        case "INVALID", "UNKNOWN_COMMAND": fail(error ?? "Unknown SDK Wrapper error")
        case "ACCESS_DENIED": fail("badged does not allow \(error ?? "this") to this user")
        // Messages that the SDK Wrapper does not know, such as API_LEVEL and SCAN.
        default: callbacks.onOtherMessage(name: name, message: self)
        }
    }

    private func deliverAuthentication(to callbacks: any WorkflowCallbacks, _ error: String?) {
        if let error { return callbacks.onAuthenticationStartFailed(error: error) }
        let url = self["url"]?.string.flatMap { URL(string: $0) }
        let result = self["result"].flatMap(AuthResultData.init)
        guard url != nil || result != nil else { return callbacks.onAuthenticationStarted() }
        callbacks.onAuthenticationCompleted(authResult: AuthResult(url: url, result: result))
    }
}
