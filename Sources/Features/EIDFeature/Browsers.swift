// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Host
import Server
import Text

/// Authentications that a browser requests, and the client that shows them to the user. docs/protocol/browsers.md.
extension EIDFeature {
    var browserCommands: [CommandSpec] {
        [
            CommandSpec(
                "SET_USER_INTERFACE",
                UserInterfaceMessage.name,
                permission: .agent,
                refusal: { [self] failure, session in
                    Reply(UserInterfaceMessage(active: isUserInterface(session), error: failure.message))
                },
                setUserInterface
            ),
            CommandSpec("ACTIVATE", ActivationMessage.name, permission: .activate, isForIdle: true, activate),
        ]
    }

    func isUserInterface(_ session: Session) -> Bool { userInterface(of: session.uid) === session }

    /// The user interface for the browsers of a user: the last one of this user. nil if the kernel does not report the
    /// user.
    private func userInterface(of uid: UInt32?) -> Session? {
        guard let uid else { return nil }
        return userInterfaces.last { $0.uid == uid }
    }

    private func userInterface(forBrowser browser: Session) -> Session? {
        userInterface(of: browser.uid) ?? (rootServesAll ? userInterface(of: 0) : nil)
    }

    private func setUserInterface(_ call: Call) throws(Failure) -> Reply {
        let (session, isActive) = (call.session, try call.arguments.requiredFlag("active"))
        changeUserInterfaces(of: session) { interfaces in
            interfaces.removeAll { $0 === session }
            if isActive { interfaces.append(session) }
        }
        return Reply(UserInterfaceMessage(active: isActive))
    }

    /// Changes the user interfaces, and notifies another client of the same user whose role has changed.
    private func changeUserInterfaces(of session: Session, _ change: (inout [Session]) -> Void) {
        let before = userInterface(of: session.uid)
        change(&userInterfaces)
        let after = userInterface(of: session.uid)
        guard before !== after else { return }
        if let before, before !== session { before.push(UserInterfaceMessage(active: false)) }
        if let after, after !== session { after.push(UserInterfaceMessage(active: true)) }
    }

    /// The answer is sent when the authentication ends. There is no time limit for the user.
    private func activate(_ call: Call) throws(Failure) -> Reply {
        let session = call.session
        let id = ObjectIdentifier(session)
        guard let userInterface = userInterface(forBrowser: session) else {
            let reason =
                session.uid == nil
                ? "the kernel does not report the user of this browser"
                : "this user has no user interface, such as badgectl agent"
            session.log(.notice, "\(session.name): \(reason)")
            throw Failure(ActivationError.noUserInterface)
        }
        if let module = call.arguments["showUI"]?.string {
            // Any web page can send this request, at any rate.
            if mayShow(userInterface) { userInterface.push(WrittenMessage("SHOW_UI") { $0.member("module", module) }) }
            return Reply(ActivationMessage())
        }
        guard let url = call.arguments["tcTokenURL"]?.string, Self.hasHost(url) else {
            throw Failure(ActivationError.noTcToken)
        }
        guard userInterface.workflow == nil, browserAuthentications[id] == nil,
            userInterface.workflowRefusal() == nil
        else { throw Failure(ActivationError.busy) }
        let request = call.request
        browserAuthentications[id] = authenticate(in: userInterface, at: url) { [weak self, weak session] end in
            // A session that is gone has removed its entry, and another one may have its address now.
            guard let session else { return }
            self?.browserAuthentications[id] = nil
            let error = end.url == nil ? Phrase(verbatim: ActivationError(end.reason).rawValue) : nil
            session.answer(ActivationMessage(url: end.url, error: error), to: request)
        }
        session.push(WrittenMessage("ACTIVATION") { $0.member("accepted", true) })
        return .none
    }

    /// Whether a user interface may be asked once more in this minute.
    private func mayShow(_ userInterface: Session) -> Bool {
        let (id, minute) = (ObjectIdentifier(userInterface), Loop.now / 60_000)
        var count = shown[id].map { $0.minute == minute ? $0.count : 0 } ?? 0
        count += 1
        shown[id] = (minute, count)
        return count <= Self.mostShown
    }

    /// SHOW_UI in a minute, to one user interface.
    private static var mostShown: Int { 20 }

    /// The client may no longer be the user interface.
    func endUserInterface(_ session: Session) {
        guard userInterfaces.contains(where: { $0 === session }) else { return }
        changeUserInterfaces(of: session) { interfaces in interfaces.removeAll { $0 === session } }
        session.push(UserInterfaceMessage(active: false, error: Workflow.denied))
    }

    func browserOrUserInterfaceLeft(_ session: Session) {
        shown[ObjectIdentifier(session)] = nil
        changeUserInterfaces(of: session) { interfaces in interfaces.removeAll { $0 === session } }
        browserAuthentications.removeValue(forKey: ObjectIdentifier(session))?.browserLeft()
    }
}

extension Failure {
    fileprivate init(_ error: ActivationError) { self.init(Code(error.rawValue), Phrase(verbatim: error.rawValue)) }
}

/// The reason why a browser gets no address: `error` of ACTIVATION.
private enum ActivationError: String {
    case noUserInterface = "No user interface"
    case busy = "Busy"
    case noTcToken = "No TcToken"
    case unreachable = "Unreachable"
    case insecure = "Insecure"
    case noAddress = "No address"

    /// Returns the error of an authentication that ended without an address.
    ///
    /// TR-03124-1 2.7 distinguishes a TcToken that could not be fetched from all other failures.
    init(_ reason: FailureCode?) {
        switch reason {
        case .parseTcTokenInvalidURL, .parseTcTokenMissingURL, .getTcTokenInvalidServerReply,
            .getTcTokenServiceUnavailable, .getTcTokenServerError, .getTcTokenClientError, .getTcTokenEmptyData,
            .getTcTokenInvalidData, .getTcTokenInvalidRedirectURL:
            self = .noTcToken
        case .getTcTokenNetworkError, .getTcTokenInvalidCertificateKeyLength, .getTcTokenInvalidEphemeralKeyLength:
            self = .unreachable
        case .getTcTokenInvalidURL: self = .insecure
        default: self = .noAddress
        }
    }
}

// MARK: Messages

/// ACTIVATION at the end: the address for the browser, or an error. Without both, the request is done.
struct ActivationMessage: Message {
    static let name: StaticString = "ACTIVATION"
    var url: String?
    var error: Phrase?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        if let url { object.member("url", url) }
    }
}

/// USER_INTERFACE: whether the client is the user interface for browsers.
struct UserInterfaceMessage: Message {
    static let name: StaticString = "USER_INTERFACE"
    let active: Bool
    var error: Phrase?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("active", active)
    }
}
