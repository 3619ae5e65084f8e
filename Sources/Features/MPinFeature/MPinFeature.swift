// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
import Crypto
import Host
package import MPin
package import Server
package import Store
import Text

/// Logs users in at services with M-Pin: a PIN and a token, without a password at the server. docs/protocol/mpin.md.
@Loop package final class MPinFeature: Feature {
    let users: StoredUsers
    private let configuration: MPinConfiguration
    /// nil: no token can be sealed under a card.
    let cards: (any SealingKeySource)?
    var clients: [ObjectIdentifier: MPinClient] = [:]
    /// By the name of a user in the store.
    var pending: [String: PendingSecret] = [:]
    /// Registrations for signing, by the name of a user in the store.
    var pendingSigners: [String: PendingSecret] = [:]
    /// The sessions of browsers that can be ended, by the name of a user in the store.
    var logouts: [String: LoginResult.Logout] = [:]
    /// The users with whom a dialogue runs.
    private var busy: Set<String> = []

    package init(_ store: StateStore, _ configuration: MPinConfiguration, cards: (any SealingKeySource)? = nil) {
        users = StoredUsers(store)
        self.configuration = configuration
        self.cards = cards
    }

    package func sessionEnded(_ session: Session) { clients[ObjectIdentifier(session)] = nil }

    package var commands: [CommandSpec] {
        localCommands + backendCommands + registrationCommands + loginCommands + sessionCommands + signingCommands
    }

    // MARK: Clients

    func client(of session: Session) throws(Failure) -> MPinClient {
        guard let client = clients[ObjectIdentifier(session)] else {
            throw Failure(.flowError, "send MPIN_INIT first")
        }
        return client
    }

    func settings(of client: MPinClient) throws(Failure) -> ClientSettings {
        guard let settings = client.settings else {
            throw Failure(.flowError, "there is no backend: send MPIN_SET_BACKEND first")
        }
        return settings
    }

    func connection(for client: MPinClient) -> MPinConnection {
        MPinConnection(configuration, headers: client.allHeaders, domains: client.domains)
    }

    /// Forgets the time permits of a user in every connection.
    func forgetPermits(of name: String) {
        for client in clients.values { client.permits[name] = nil }
    }

    /// The records of the store, for GET_HEALTH.
    package nonisolated static let recordKinds = StoredUsers.recordKinds

    // MARK: Registrations under way

    func pendingSecret(of user: StoredUser, _ name: String) -> PendingSecret? {
        guard let found = pending[name], found.regOTT == user.regOTT else { return nil }
        return found
    }

    // MARK: Commands

    typealias Content = MPinResultMessage.Content

    func command(_ name: String, _ method: @escaping CommandSpec.Method) -> CommandSpec {
        CommandSpec(name, Self.answer, permission: Self.needed, isForIdle: true, refusal: Self.refusal(name), method)
    }

    func command(_ name: String, _ method: @escaping CommandSpec.AsyncMethod) -> CommandSpec {
        CommandSpec(name, Self.answer, permission: Self.needed, isForIdle: true, refusal: Self.refusal(name), method)
    }

    private static let answer = MPinResultMessage.name
    private static let needed: Permissions = [.cards, .mpin]

    private static func refusal(_ name: String) -> CommandSpec.Refusal {
        { failure, _ in Reply(MPinResultMessage(name, failure)) }
    }

    /// Starts a workflow, which may wait for servers.
    func workflow(_ call: Call, _ body: @escaping @Loop (Workflow) async throws(Failure) -> Content) -> Reply {
        let name = call.name
        return .workflow("MPIN", announcedBy: Self.started(name)) { workflow throws(Failure) in
            Reply(MPinResultMessage(name, try await body(workflow)))
        }
    }

    private static func started(_ name: String) -> WrittenMessage {
        WrittenMessage("MPIN_STARTED") { $0.member("operation", name) }
    }

    // MARK: Dialogues with a user

    /// A user with whom a dialogue runs.
    struct Dialogue: Sendable {
        let client: MPinClient
        let settings: ClientSettings
        /// In the store.
        let name: String
    }

    /// A workflow with one user.
    struct UserRun: Sendable {
        let workflow: Workflow
        let dialogue: Dialogue
        let user: StoredUser
    }

    /// The user that a command names: `userId`, at the backend of the client.
    func dialogue(_ call: Call) throws(Failure) -> Dialogue {
        let client = try client(of: call.session)
        let settings = try settings(of: client)
        let identity = try call.arguments.identity()
        let name = try name(try call.uid, identity, settings.backend, customer: client.customer)
        return Dialogue(client: client, settings: settings, name: name)
    }

    /// Starts a workflow with one user, whom the final message shows. No other dialogue with this user runs meanwhile.
    func userWorkflow(
        _ call: Call,
        _ dialogue: Dialogue,
        _ body: @escaping @Loop (UserRun) async throws(Failure) -> Content
    ) -> Reply {
        let name = call.name
        var known: StoredUser?
        func refusal(_ failure: Failure) -> Reply {
            Reply(MPinResultMessage(name, failure, known.map { .user($0) } ?? .none))
        }
        return .workflow("MPIN", announcedBy: Self.started(name), refusal: refusal) { [self] workflow throws(Failure) in
            guard busy.insert(dialogue.name).inserted else { throw Self.isBusy }
            defer { busy.remove(dialogue.name) }
            do throws(Failure) {
                guard let user = try await users.user(dialogue.name) else {
                    throw Failure(
                        .flowError,
                        "there is no such user at this backend",
                        advice: "send MPIN_MAKE_USER first"
                    )
                }
                let run = UserRun(workflow: workflow, dialogue: dialogue, user: user)
                return Reply(MPinResultMessage(name, try await body(run)))
            } catch {
                let event = "a user of M-Pin is not shown at the end of a workflow"
                known = await Failure.logged(event, of: try await users.user(dialogue.name)) ?? nil
                throw error
            }
        }
    }

    /// Deletes a user, unless a dialogue with this user runs.
    func delete(_ name: String) async throws(Failure) {
        guard busy.insert(name).inserted else { throw Self.isBusy }
        defer { busy.remove(name) }
        guard try await users.has(name) else {
            throw Failure(.flowError, "there is no such user")
        }
        try await users.remove(name)
        pending[name] = nil
        pendingSigners[name] = nil
        logouts[name] = nil
        forgetPermits(of: name)
    }

    private static let isBusy = Failure(
        .flowError,
        "another dialogue with this user is running: wait until it has ended"
    )

    func name(
        _ uid: UInt32,
        _ identity: String,
        _ backend: Backend,
        customer: String?
    ) throws(Failure) -> String {
        return try serverValues(StoredUser.name(uid, identity, backend, customer: customer))
    }
}
