// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Host
import Server
import Text
import Wire

/// Authentications that a browser requests, and the client that shows them to the user. docs/protocol/browsers.md.
extension EIDFeature {
    var browserCommands: [CommandSpec] {
        [
            CommandSpec("SET_USER_INTERFACE", permission: .agent) { [self] session, command in
                session.answer(setUserInterface(session, command), to: command)
                return .answered
            },
            CommandSpec("ACTIVATE", permission: .activate) { [self] session, command in activate(session, command) },
        ]
    }

    /// The user interface for the browsers of a user: the last one of this user. nil if the kernel does not report the
    /// user.
    private func userInterface(of uid: UInt32?) -> Session? {
        guard let uid else { return nil }
        return userInterfaces.last { $0.uid == uid }
    }

    private func userInterface(forBrowser browser: Session) -> Session? {
        userInterface(of: browser.uid) ?? (rootServesAll ? userInterface(of: 0) : nil)
    }

    private func setUserInterface(_ session: Session, _ command: Command) -> UserInterfaceMessage {
        let isActive = userInterface(of: session.uid) === session
        switch command.bool("active") {
        case .missing: return UserInterfaceMessage(active: isActive, error: "'active' cannot be undefined")
        case .invalid: return UserInterfaceMessage(active: isActive, error: "Invalid 'active'")
        case .value(let flag):
            changeUserInterfaces(of: session) { interfaces in
                interfaces.removeAll { $0 === session }
                if flag { interfaces.append(session) }
            }
            return UserInterfaceMessage(active: flag)
        }
    }

    /// Changes the user interfaces, and tells another client of the same user that its role has changed by this.
    private func changeUserInterfaces(of session: Session, _ change: (inout [Session]) -> Void) {
        let before = userInterface(of: session.uid)
        change(&userInterfaces)
        let after = userInterface(of: session.uid)
        guard before !== after else { return }
        if let before, before !== session { before.push(UserInterfaceMessage(active: false)) }
        if let after, after !== session { after.push(UserInterfaceMessage(active: true)) }
    }

    /// The answer is sent when the authentication ends. There is no time limit for the user.
    private func activate(_ session: Session, _ command: Command) -> CommandOutcome {
        let id = ObjectIdentifier(session)
        guard session.workflow == nil else { return .badState }
        func refuse(_ error: ActivationError) -> CommandOutcome {
            session.answer(ActivationMessage(error: error.rawValue), to: command)
            return .answered
        }
        guard let userInterface = userInterface(forBrowser: session) else {
            let reason =
                session.uid == nil
                ? "the kernel does not report the user of this browser"
                : "this user has no user interface, such as badgectl agent"
            session.server.log(.notice, "\(session.name): \(reason)")
            return refuse(.noUserInterface)
        }
        if case .value(let module) = command.string("showUI") {
            userInterface.push(ShowUIMessage(module: module))
            session.answer(ActivationMessage(), to: command)
            return .answered
        }
        guard case .value(let url) = command.string("tcTokenURL"), Self.hasHost(url) else { return refuse(.noTcToken) }
        guard userInterface.workflow == nil, browserAuthentications[id] == nil,
            userInterface.workflowRefusal() == nil
        else { return refuse(.busy) }
        let request = SavedRequest(command)
        browserAuthentications[id] = authenticate(in: userInterface, at: url) { [weak self, weak session] end in
            self?.browserAuthentications[id] = nil
            let error = end.url == nil ? ActivationError(end.reason).rawValue : nil
            session?.answer(ActivationMessage(url: end.url, error: error), to: request)
        }
        session.push(ActivationAcceptedMessage())
        return .answered
    }

    func browserOrUserInterfaceLeft(_ session: Session) {
        changeUserInterfaces(of: session) { interfaces in interfaces.removeAll { $0 === session } }
        browserAuthentications.removeValue(forKey: ObjectIdentifier(session))?.browserLeft()
    }
}

/// The reason why a browser gets no address: `error` of ACTIVATION.
private enum ActivationError: String {
    case noUserInterface = "No user interface"
    case busy = "Busy"
    case noTcToken = "No TcToken"
    case noAddress = "No address"

    /// Returns the error of an authentication that ended without an address.
    ///
    /// TR-03124-1 2.7 distinguishes a TcToken that could not be fetched from all other failures.
    init(_ reason: FailureCode?) {
        switch reason {
        case .parseTcTokenInvalidURL, .parseTcTokenMissingURL, .getTcTokenInvalidServerReply,
            .getTcTokenServiceUnavailable, .getTcTokenServerError, .getTcTokenClientError, .getTcTokenEmptyData,
            .getTcTokenInvalidData, .getTcTokenNetworkError:
            self = .noTcToken
        default: self = .noAddress
        }
    }
}

// MARK: Messages

/// ACTIVATION at the end: the address for the browser, or an error. Without both, the request is done.
struct ActivationMessage: Message {
    static let name: StaticString = "ACTIVATION"
    var url: String?
    var error: String?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        if let url { object.member("url", url) }
    }
}

/// ACTIVATION at the start of the authentication.
struct ActivationAcceptedMessage: Message {
    static let name: StaticString = "ACTIVATION"

    func write(to object: inout JSONWriter, _ level: APILevel) { object.member("accepted", true) }
}

/// SHOW_UI asks the user interface to show its window, and optionally a part of the window.
struct ShowUIMessage: Message {
    static let name: StaticString = "SHOW_UI"
    let module: String

    func write(to object: inout JSONWriter, _ level: APILevel) { object.member("module", module) }
}

/// USER_INTERFACE: whether the client is the user interface for browsers.
struct UserInterfaceMessage: Message {
    static let name: StaticString = "USER_INTERFACE"
    let active: Bool
    var error: String?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("active", active)
    }
}
