// SPDX-License-Identifier: Apache-2.0
public import FoundationEssentials
import Text

extension WorkflowController {
    // MARK: Workflows

    /// RUN_AUTH: starts an online authentication.
    ///
    /// - Parameters:
    ///   - tcTokenUrl: the address that the web service has given.
    ///   - developerMode: applies the rules for test services.
    ///   - userInfoMessages: has no effect on Linux.
    ///   - statusMsgEnabled: whether `onStatus` reports the progress.
    public func startAuthentication(
        withTcTokenUrl tcTokenUrl: URL,
        withDeveloperMode developerMode: Bool = false,
        withUserInfoMessages userInfoMessages: AA2UserInfoMessages? = nil,
        withStatusMsgEnabled statusMsgEnabled: Bool = true
    ) {
        var members = [
            JSON.Member("tcTokenURL", .string(tcTokenUrl.absoluteString)),
            JSON.Member("developerMode", .bool(developerMode)),
            JSON.Member("status", .bool(statusMsgEnabled)),
        ]
        if let userInfoMessages { members.append(.init("messages", userInfoMessages.json)) }
        send(SDKCommand("RUN_AUTH", members))
    }

    /// RUN_CHANGE_PIN: starts a PIN change.
    ///
    /// - Parameters:
    ///   - userInfoMessages: has no effect on Linux.
    ///   - statusMsgEnabled: whether `onStatus` reports the progress.
    public func startChangePin(
        withUserInfoMessages userInfoMessages: AA2UserInfoMessages? = nil,
        withStatusMsgEnabled statusMsgEnabled: Bool = true
    ) {
        var members = [JSON.Member("status", .bool(statusMsgEnabled))]
        if let userInfoMessages { members.append(.init("messages", userInfoMessages.json)) }
        send(SDKCommand("RUN_CHANGE_PIN", members))
    }

    /// ACCEPT: the user agrees to the access rights.
    public func accept() { send(SDKCommand("ACCEPT")) }

    /// CANCEL: ends the running workflow.
    public func cancel() { send(SDKCommand("CANCEL")) }

    /// CONTINUE: resumes the workflow after `onPause`.
    public func continueWorkflow() { send(SDKCommand("CONTINUE")) }

    /// INTERRUPT: exists only on iOS; here `onWrapperError` follows.
    public func interrupt() { send(SDKCommand("INTERRUPT")) }

    // MARK: Questions to badged

    /// GET_ACCESS_RIGHTS.
    public func getAccessRights() { send(SDKCommand("GET_ACCESS_RIGHTS")) }

    /// SET_ACCESS_RIGHTS: grants these optional rights and denies the others.
    public func setAccessRights(_ optionalRights: [AccessRight]) {
        send(SDKCommand("SET_ACCESS_RIGHTS", [.init("chat", .array(optionalRights.map { .string($0.rawValue) }))]))
    }

    /// GET_CERTIFICATE.
    public func getCertificate() { send(SDKCommand("GET_CERTIFICATE")) }

    /// GET_INFO.
    public func getInfo() { send(SDKCommand("GET_INFO")) }

    /// GET_READER.
    public func getReader(name: String) { send(SDKCommand("GET_READER", [.init("name", .string(name))])) }

    /// GET_READER_LIST.
    public func getReaderList() { send(SDKCommand("GET_READER_LIST")) }

    /// GET_STATUS.
    public func getStatus() { send(SDKCommand("GET_STATUS")) }

    // MARK: Answers

    /// SET_CAN; nil for a reader with keypad.
    public func setCan(_ can: String?) { send("SET_CAN", can) }

    /// SET_PIN; nil for a reader with keypad.
    public func setPin(_ pin: String?) { send("SET_PIN", pin) }

    /// SET_NEW_PIN; nil for a reader with keypad.
    public func setNewPin(_ newPin: String?) { send("SET_NEW_PIN", newPin) }

    /// SET_PUK; nil for a reader with keypad.
    public func setPuk(_ puk: String?) { send("SET_PUK", puk) }

    /// SET_CARD: puts a card into a virtual reader; nil: the reader's own card.
    public func setCard(name: String, simulator: Simulator? = nil) {
        var members = [JSON.Member("name", .string(name))]
        if let simulator { members.append(.init("simulator", simulator.json)) }
        send(SDKCommand("SET_CARD", members))
    }

    private func send(_ command: String, _ value: String?) {
        answer(command, value.map { SecretBox(Secret($0.utf8)) })
    }
}
