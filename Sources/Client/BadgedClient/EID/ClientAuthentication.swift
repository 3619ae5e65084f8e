// SPDX-License-Identifier: Apache-2.0
import Text

/// An online authentication has begun or ended: AUTH.
public struct AuthenticationMessage: ServerMessage, WorkflowMessage {
    static let names = ["AUTH"]

    /// How the authentication ended; nil when it has just begun.
    public var outcome: AuthenticationResult?

    public init(outcome: AuthenticationResult?) { self.outcome = outcome }

    init(_ json: JSON) throws(Malformed) {
        guard json["result"] != nil || json["url"] != nil else { return }
        guard let result = json["result"], let major = result["major"]?.string else {
            throw Malformed("result")
        }
        outcome = AuthenticationResult(
            major: major,
            minor: result["minor"]?.string,
            message: result["message"]?.string,
            description: result["description"]?.string,
            reason: result["reason"]?.string,
            network: result["network"]?.string.flatMap(AuthenticationResult.NetworkFault.init),
            url: json["url"]?.string,
            sent: SentData(json)
        )
    }
}

/// How an online authentication ended.
public struct AuthenticationResult: Sendable, Equatable {
    /// A URI of the eCard-API. It ends in `#ok` when the service has what it asked for.
    public var major: String
    public var minor: String?
    /// What has happened.
    public var message: String?
    /// The kind of error, in words.
    public var description: String?
    /// A name from the list of failure reasons, docs/protocol/eid.md.
    public var reason: String?
    /// What is wrong with the part of badged that speaks to services; nil when it did its work.
    public var network: NetworkFault?
    /// The address that the browser opens next, also after an error.
    public var url: String?
    /// What the service may have of the card's data; nil: badged does not report it, because it is older.
    public var sent: SentData?

    public enum NetworkFault: String, Sendable {
        /// It does not run.
        case unavailable
        /// It failed during a request.
        case lost
    }

    public var isSuccess: Bool { major.hasSuffix("#ok") }
}

/// What the service may have of the card's data. It never has more than the user granted.
public struct SentData: Sendable, Equatable {
    public enum State: String, Sendable {
        /// No answer of the card to a command of the service was sent.
        case none
        /// Answers of the card may have arrived.
        case possible
        /// The service has received answers of the card.
        case read
    }

    public var state: State
    /// The names of the granted rights that reveal data; empty with `none`.
    public var rights: [String]

    public init(_ state: State, rights: [String] = []) { (self.state, self.rights) = (state, rights) }

    init?(_ json: JSON) {
        guard let state = json["sent"]?.string.flatMap(State.init) else { return nil }
        self.init(state, rights: json["rights"]?.array?.compactMap(\.string) ?? [])
    }
}

/// The commands of an online authentication. docs/protocol/eid.md, RUN_AUTH.
extension DaemonConnection {
    /// Authenticates to a service: runs RUN_AUTH from its start to its end. A connection runs one workflow at
    /// a time. Cancelling the calling task cancels the workflow.
    ///
    /// - Parameters:
    ///   - tcTokenURL: the address at which the service offers its TcToken.
    ///   - reader: name of the reader to use; nil: the first with an eID card.
    ///   - developerMode: applies the rules for test services, and accepts no other service.
    ///   - user: gives the consent and answers the questions.
    /// - Returns: how the workflow ended, also after the user has cancelled it.
    /// - Throws: a refusal, `workflowRunning`, the end of the connection, or `cancelled`.
    public func authenticate(
        tcTokenURL: String,
        reader: String? = nil,
        developerMode: Bool = false,
        user: some EIDUser
    ) async throws(ClientError) -> AuthenticationResult {
        try await runWorkflow(
            until: AuthenticationMessage.self,
            user,
            start: await self.startAuthentication(tcTokenURL: tcTokenURL, reader: reader, developerMode: developerMode)
        )
    }

    /// RUN_AUTH: starts an authentication. Its questions and its end, `AuthenticationMessage`, are events.
    ///
    /// - Parameters:
    ///   - tcTokenURL: the address at which the service offers its TcToken.
    ///   - reader: name of the reader to use; nil: the first with an eID card.
    ///   - developerMode: applies the rules for test services, and accepts no other service.
    ///   - status: whether badged sends STATUS during the workflow; nil: as before on this connection, at first true.
    /// - Returns: identifies a refusal.
    /// - Throws: when the command cannot be sent.
    @discardableResult
    public func startAuthentication(
        tcTokenURL: String,
        reader: String? = nil,
        developerMode: Bool = false,
        status: Bool? = nil
    ) async throws(ClientError) -> RequestID {
        var members = [JSON.Member("tcTokenURL", .string(tcTokenURL))]
        if developerMode { members.append(.init("developerMode", .bool(true))) }
        if let reader { members.append(.init("reader", .string(reader))) }
        if let status { members.append(.init("status", .bool(status))) }
        return try await send("RUN_AUTH", members)
    }

    /// GET_CERTIFICATE: the service that asks, while the workflow waits for consent.
    public func certificate() async throws(ClientError) -> ServiceCertificate { try await ask("GET_CERTIFICATE") }

    /// GET_ACCESS_RIGHTS: the rights that the service asks for, while the workflow waits for consent.
    public func accessRights() async throws(ClientError) -> AccessRights { try await ask("GET_ACCESS_RIGHTS") }

    /// SET_ACCESS_RIGHTS: grants these optional rights and denies the others. Returns the rights after the change.
    @discardableResult
    public func setAccessRights(_ optional: [String]) async throws(ClientError) -> AccessRights {
        try await ask("SET_ACCESS_RIGHTS", [.init("chat", .array(optional.map(JSON.string)))])
    }

    /// ACCEPT: agrees that the service gets the effective rights.
    @discardableResult
    public func accept() async throws(ClientError) -> RequestID { try await send("ACCEPT") }
}
