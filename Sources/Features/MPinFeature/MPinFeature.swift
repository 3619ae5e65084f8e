// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
import Crypto
import Host
package import MPin
package import Server
package import Store

/// Logs users in at services with M-Pin: a PIN and a token, without a password at the server. docs/protocol/mpin.md.
@Loop package final class MPinFeature: Feature {
    let users: MPinUsers
    private let configuration: MPinConfiguration
    /// nil: no token can be sealed under a card.
    let cards: (any SealingKeySource)?
    private var clients: [ObjectIdentifier: MPinClient] = [:]
    /// By the name of a user in the store.
    private var pending: [String: PendingSecret] = [:]
    /// Registrations for signing, by the name of a user in the store.
    private var pendingSigners: [String: PendingSecret] = [:]
    /// The users with whom a dialogue runs.
    private var busy: Set<String> = []

    package init(_ store: StateStore, _ configuration: MPinConfiguration, cards: (any SealingKeySource)? = nil) {
        (users, self.configuration, self.cards) = (MPinUsers(store), configuration, cards)
    }

    package func sessionEnded(_ session: Session) { clients[ObjectIdentifier(session)] = nil }

    package var commands: [CommandSpec] {
        localCommands + backendCommands + registrationCommands + loginCommands + sessionCommands + signingCommands
    }

    // MARK: Clients

    func begin(_ client: MPinClient, of session: Session) { clients[ObjectIdentifier(session)] = client }

    func end(_ session: Session) { clients[ObjectIdentifier(session)] = nil }

    func client(of session: Session) throws(MPinFailure) -> MPinClient {
        guard let client = clients[ObjectIdentifier(session)] else {
            throw MPinFailure(.flowError, "send MPIN_INIT first")
        }
        return client
    }

    func settings(of client: MPinClient) throws(MPinFailure) -> ClientSettings {
        guard let settings = client.settings else {
            throw MPinFailure(.flowError, "there is no backend: send MPIN_SET_BACKEND first")
        }
        return settings
    }

    func uid(of session: Session) throws(MPinFailure) -> UInt32 {
        guard let uid = session.uid else {
            throw MPinFailure(.storageError, "the kernel does not report the user of this client")
        }
        return uid
    }

    func connection(for client: MPinClient) -> MPinConnection {
        MPinConnection(configuration, headers: client.allHeaders, domains: client.domains)
    }

    // MARK: Registrations under way

    func pendingSecret(of user: MPinUser, _ name: String) -> PendingSecret? {
        guard let found = pending[name], found.regOTT == user.regOTT else { return nil }
        return found
    }

    func keep(_ secret: PendingSecret, of name: String) { pending[name] = secret }

    func dropPending(_ name: String) { pending[name] = nil }

    func pendingSigner(_ name: String) -> PendingSecret? { pendingSigners[name] }

    func keepSigner(_ secret: PendingSecret?, of name: String) { pendingSigners[name] = secret }

    // MARK: Commands

    typealias Content = MPinResultMessage.Content

    /// A command that is answered at once.
    func local(
        _ name: String,
        _ perform: @escaping @Loop (MPinFeature, Session, Arguments) throws(MPinFailure) -> Content
    ) -> CommandSpec {
        command(name) { [unowned self] session, arguments in
            let message: MPinResultMessage
            do throws(MPinFailure) {
                message = MPinResultMessage(name, try perform(self, session, arguments))
            } catch {
                message = MPinResultMessage(name, error)
            }
            session.answer(message, to: arguments.command)
        }
    }

    /// A command that is answered after work with the store.
    func stored<Prepared: Sendable>(
        _ name: String,
        prepare: @escaping @Loop (MPinFeature, Session, Arguments) throws(MPinFailure) -> Prepared,
        _ perform: @escaping @Loop (MPinFeature, Prepared) async throws(MPinFailure) -> Content
    ) -> CommandSpec {
        command(name) { [unowned self] session, arguments in
            do throws(MPinFailure) {
                let prepared = try prepare(self, session, arguments)
                session.answerLater(to: arguments.command) { [self] in
                    do throws(MPinFailure) {
                        return MPinResultMessage(name, try await perform(self, prepared))
                    } catch {
                        log(session, name, error)
                        return MPinResultMessage(name, error)
                    }
                }
            } catch {
                session.answer(MPinResultMessage(name, error), to: arguments.command)
            }
        }
    }

    /// A command that starts a workflow, which may wait for servers and for the user.
    func workflow<Prepared: Sendable>(
        _ name: String,
        prepare: @escaping @Loop (MPinFeature, Session, Arguments) throws(MPinFailure) -> Prepared,
        _ perform: @escaping @Loop (MPinFeature, Workflow, Prepared) async -> MPinResultMessage
    ) -> CommandSpec {
        command(name) { [unowned self] session, arguments in
            do throws(MPinFailure) {
                let prepared = try prepare(self, session, arguments)
                if let refusal = session.workflowRefusal() { throw MPinFailure(.flowError, refusal) }
                session.start("MPIN", announcedBy: MPinStartedMessage(operation: name)) { [self] workflow in
                    await perform(self, workflow, prepared)
                }
            } catch {
                session.answer(MPinResultMessage(name, error), to: arguments.command)
            }
        }
    }

    private func command(_ name: String, _ perform: @escaping @Loop (Session, Arguments) -> Void) -> CommandSpec {
        CommandSpec(name, permission: [.cards, .mpin]) { session, command in
            guard session.workflow == nil else { return .badState }
            perform(session, Arguments(command: command))
            return .answered
        }
    }

    func log(_ session: Session, _ name: String, _ failure: MPinFailure) {
        session.server.log(.notice, "\(session.name): \(name) ended, \(failure.status.name): \(failure.text)")
    }

    // MARK: Dialogues with a user

    /// A user with whom a dialogue runs.
    struct Dialogue: Sendable {
        let client: MPinClient
        let settings: ClientSettings
        /// In the store.
        let name: String
        let uid: UInt32
    }

    /// A command for one user of the backend: `userId`. No other dialogue with this user runs meanwhile.
    func userWorkflow<Options: Sendable>(
        _ name: String,
        _ options: @escaping @Loop (Arguments, ClientSettings) throws(MPinFailure) -> Options,
        _ perform:
            @escaping @Loop (MPinFeature, Workflow, Dialogue, MPinUser, Options) async throws(MPinFailure) -> Content
    ) -> CommandSpec {
        workflow(name) { feature, session, arguments throws(MPinFailure) in
            let client = try feature.client(of: session)
            let settings = try feature.settings(of: client)
            let (uid, identity) = (try feature.uid(of: session), try arguments.identity())
            let stored = try feature.name(uid, identity, settings.backend, customer: client.customer)
            let dialogue = Dialogue(client: client, settings: settings, name: stored, uid: uid)
            return (dialogue, try options(arguments, settings))
        } _: { feature, workflow, prepared in
            await feature.run(name, workflow, prepared.0, prepared.1, perform)
        }
    }

    private func run<Options: Sendable>(
        _ name: String,
        _ workflow: Workflow,
        _ dialogue: Dialogue,
        _ options: Options,
        _ perform: @Loop (MPinFeature, Workflow, Dialogue, MPinUser, Options) async throws(MPinFailure) -> Content
    ) async -> MPinResultMessage {
        guard busy.insert(dialogue.name).inserted else { return MPinResultMessage(name, Self.isBusy) }
        defer { busy.remove(dialogue.name) }
        do throws(MPinFailure) {
            guard let user = try await stored({ users throws(StoreError) in try await users.user(dialogue.name) })
            else {
                throw MPinFailure(.flowError, "there is no such user at this backend: send MPIN_MAKE_USER first")
            }
            return MPinResultMessage(name, try await perform(self, workflow, dialogue, user, options))
        } catch {
            log(workflow.session, name, error)
            let user = try? await users.user(dialogue.name)
            return MPinResultMessage(name, error, user.map { .user($0) } ?? .none)
        }
    }

    /// Deletes a user, unless a dialogue with this user runs.
    func delete(_ name: String) async throws(MPinFailure) {
        guard busy.insert(name).inserted else { throw Self.isBusy }
        defer { busy.remove(name) }
        guard try await stored({ users throws(StoreError) in try await users.user(name) }) != nil else {
            throw MPinFailure(.flowError, "there is no such user")
        }
        try await stored { users throws(StoreError) in try await users.remove(name) }
        dropPending(name)
        keepSigner(nil, of: name)
    }

    private static let isBusy = MPinFailure(
        .flowError,
        "another dialogue with this user is running: wait until it has ended"
    )

    func name(
        _ uid: UInt32,
        _ identity: String,
        _ backend: Backend,
        customer: String?
    ) throws(MPinFailure) -> String {
        do throws(CryptoError) {
            return try MPinUser.name(uid, identity, backend, customer: customer)
        } catch {
            throw MPinFailure(error)
        }
    }

    /// Works with the store.
    func stored<Result: Sendable>(
        _ body: @Loop (MPinUsers) async throws(StoreError) -> Result
    ) async throws(MPinFailure) -> Result {
        do throws(StoreError) {
            return try await body(users)
        } catch {
            throw MPinFailure(.storageError, error.text)
        }
    }
}
