// SPDX-License-Identifier: Apache-2.0
import Text

/// The messages between badged and the user interface for browsers.
let browserMessages: [any NamedMessage.Type] = [UserInterface.self, ShowUI.self]

/// Whether this connection is the user interface for the user's browsers: USER_INTERFACE.
public struct UserInterface: ServerMessage, NamedMessage {
    static let names = ["USER_INTERFACE"]

    public var isActive: Bool

    public init(isActive: Bool) { self.isActive = isActive }

    init(_ json: JSON) throws(Malformed) { self.init(isActive: try json.required("active", as: \.bool)) }
}

/// A browser asks this program to show itself, or one of its parts: SHOW_UI.
public struct ShowUI: ServerMessage, NamedMessage {
    static let names = ["SHOW_UI"]

    public var module: String

    public init(module: String) { self.module = module }

    init(_ json: JSON) throws(Malformed) { self.init(module: try json.required("module", as: \.string)) }
}

/// The commands of a user interface for browsers. docs/protocol/browsers.md.
extension DaemonConnection {
    /// SET_USER_INTERFACE: makes this connection the user interface for the browsers of its user. A later call by
    /// another connection of the same user takes the role over. Then `UserInterface` arrives here as an event, with
    /// `isActive` false, and again with true when that connection ends. While this connection has the role, AUTH comes
    /// without RUN_AUTH, and `authenticateForBrowser` runs the workflow.
    public func setUserInterface(_ isActive: Bool) async throws(ClientError) {
        let _: UserInterface = try await ask("SET_USER_INTERFACE", [.init("active", .bool(isActive))])
    }

    /// Waits for the next authentication that a browser starts, and runs it to its end. Call `setUserInterface(true)`
    /// first. An authentication that starts between two calls waits for the second call.
    ///
    /// - Parameter user: gives the consent and answers the questions.
    /// - Returns: how the workflow ended, also after the user has cancelled it. badged itself answers the browser.
    /// - Throws: the end of the connection, `cancelled`, `workflowRunning`, or `eventsAreRead` when another task reads
    ///   `events` and may have taken the start of an authentication.
    public func authenticateForBrowser(user: some EIDUser) async throws(ClientError) -> AuthenticationResult {
        try link.inbox.beginWorkflow(isOfBrowser: true)
        defer { link.inbox.endWorkflow() }
        while let event = await link.inbox.nextWorkflowEvent() {
            await user.other(event)
            guard let message = event.message as? AuthenticationMessage, message.outcome == nil else { continue }
            return try await run(until: AuthenticationMessage.self, user, start: nil)
        }
        throw ending ?? .cancelled
    }
}
