// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Synchronization
import Text

/// The calls of one client: what `MPin` and `MPinMFA` share.
public struct MPinSession: Sendable {
    private let connection: DaemonConnection
    private let cardUser: (any CardUser)?
    private let executor = CallExecutor()
    let logouts = Logouts()

    init(_ connection: DaemonConnection, _ cardUser: (any CardUser)?) {
        self.connection = connection
        self.cardUser = cardUser
    }

    /// Runs a call. Cancelling the calling task cancels a workflow.
    func run<Value>(_ call: MPinCall<Value>) async throws(ClientError) -> Value {
        let json: JSON
        if call.isWorkflow {
            let answers = Answers(factors: call.factors, cardUser: cardUser, connection: connection)
            json = try await connection.runMPin(call.command, call.members, user: answers)
        } else {
            json = try await request(call.command, call.members)
        }
        guard let status = MpinStatus(json) else { throw .malformed(.unusable(member: "status", of: "MPIN_RESULT")) }
        return try call.read(status, json)
    }

    /// Runs a call, and blocks the calling thread until it has ended.
    func wait<Value>(_ call: MPinCall<Value>) throws(ClientError) -> Value {
        try executor.wait { () throws(ClientError) in try await run(call) }
    }

    /// Sends a command that is answered at once. A task of its own reads the answer, also if the calling task is
    /// cancelled. Otherwise the answer would become an event, and could be taken for the result of the next workflow.
    private func request(_ command: String, _ members: [JSON.Member]) async throws(ClientError) -> JSON {
        let task = Task { [connection] in
            await Result { () async throws(ClientError) in try await connection.request(command, members) }
        }
        let event = try await task.value.get()
        if let refusal = event.message.refusal { throw refusal }
        return event.json
    }

    // MARK: Connections

    static func connection(_ socketPath: String) async throws(ClientError) -> DaemonConnection {
        try await DaemonConnection.connect(to: socketPath, keepsEvents: false)
    }

    /// Connects, and blocks the calling thread until badged has answered.
    @available(*, noasync)
    static func connection(_ socketPath: String) throws(ClientError) -> DaemonConnection {
        try CallExecutor().wait { () async throws(ClientError) in try await connection(socketPath) }
    }
}

/// Answers the questions of one call with its factors. The app answers the questions about a card.
private struct Answers: MPinUser {
    let factors: Factors
    let cardUser: (any CardUser)?
    let connection: DaemonConnection

    var isAutomatic: Bool { cardUser?.isAutomatic ?? false }

    func answer(_ question: MPinQuestion) async -> SecretBox? {
        question.factor == 1 ? factors.second : factors.pin
    }

    func answer(_ question: SecretQuestion) async -> SecretBox? { await cardUser?.answer(question) }

    func typeOnKeypad(_ question: SecretQuestion) async -> Bool { await cardUser?.typeOnKeypad(question) ?? false }

    func insertCard(error: String?, reader: String?) async {
        if let cardUser { return await cardUser.insertCard(error: error, reader: reader) }
        // The app has no user for cards, so no card would come and the call would never end.
        _ = try? await connection.cancel()
    }

    func repositionCard() async -> Bool { await cardUser?.repositionCard() ?? false }
    func cardLeft(reader: String) async { await cardUser?.cardLeft(reader: reader) }
    func progress(_ percent: Int) async { await cardUser?.progress(percent) }
    func other(_ event: Event) async { await cardUser?.other(event) }
}

/// The users whose last login was that of a browser, which can be ended.
final class Logouts: Sendable {
    private struct Key: Hashable {
        let identity: String
        let backend: Backend

        init(_ user: IUser) { (identity, backend) = (user.identity, user.backend) }
    }

    private let users = Mutex<Set<Key>>([])

    func contains(_ user: IUser) -> Bool { users.withLock { $0.contains(Key(user)) } }

    /// Notes the result of a login. After one that failed badged can end the login before.
    func note(_ status: MpinStatus, _ result: JSON, _ user: IUser) {
        if status.isOK { set(result["canLogout"]?.bool ?? false, user) }
    }

    func set(_ canLogout: Bool, _ user: IUser) {
        users.withLock { if canLogout { $0.insert(Key(user)) } else { $0.remove(Key(user)) } }
    }

    func clear() { users.withLock { $0 = [] } }
}
