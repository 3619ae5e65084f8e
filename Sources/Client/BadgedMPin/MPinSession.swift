// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Secrets
import Synchronization
import Text

/// The commands of one client: what `MPin` and `MPinMFA` share.
struct MPinSession: Sendable {
    private let connection: DaemonConnection

    init(_ connection: DaemonConnection) { self.connection = connection }

    /// A call that runs.
    private final class Call: Sendable {
        let isCancelled = Mutex(false)
    }

    static func members(_ user: IUser) -> [JSON.Member] { [.init("userId", .string(user.identity))] }

    static func members(_ backend: Backend) -> [JSON.Member] {
        [.init("url", .string(backend.url)), .init("rpsPrefix", .string(backend.rpsPrefix))]
    }

    static func object(_ texts: [String: String]) -> JSON {
        .object(texts.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })
    }

    func status(_ json: JSON) throws(ClientError) -> MpinStatus {
        guard let status = MpinStatus(json) else { throw .malformed("MPIN_RESULT without a usable status") }
        return status
    }

    /// Sends a command that is answered at once.
    func request(_ command: String, _ members: [JSON.Member] = []) async throws(ClientError) -> JSON {
        let event = try await connection.request(command, members)
        if let refusal = event.message.refusal { throw refusal }
        return event.json
    }

    func ask(_ command: String, _ members: [JSON.Member] = []) async throws(ClientError) -> MpinStatus {
        try status(try await request(command, members))
    }

    func users(_ members: [JSON.Member]) async throws(ClientError) -> [IUser] {
        let json = try await request("MPIN_USERS", members)
        _ = try status(json)
        return (json["users"]?.array ?? []).compactMap(IUser.init)
    }

    /// Runs a workflow and answers its questions, each once. `second` is the second factor of MPinMFA.
    func run(
        _ command: String,
        _ members: [JSON.Member],
        pin: SecretBox? = nil,
        second: SecretBox? = nil
    ) async throws(ClientError) -> JSON {
        let (connection, call) = (connection, Call())
        // A task of its own: it reads the result even if the calling task is cancelled.
        let task = Task { () -> Result<JSON, ClientError> in
            do throws(ClientError) {
                return .success(try await Self.dialogue(connection, command, members, (pin, second), call))
            } catch {
                return .failure(error)
            }
        }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            call.isCancelled.withLock { $0 = true }
            Task { _ = try? await connection.cancel() }
        }
        return try result.get()
    }

    private static func dialogue(
        _ connection: DaemonConnection,
        _ command: String,
        _ members: [JSON.Member],
        _ secrets: (pin: SecretBox?, second: SecretBox?),
        _ call: Call
    ) async throws(ClientError) -> JSON {
        let id = try await connection.send(command, members)
        for await event in connection.events {
            switch event.name {
            case "MPIN_RESULT": return event.json
            // A CANCEL that was sent before the start has cancelled nothing.
            case "MPIN_STARTED": if call.isCancelled.withLock({ $0 }) { _ = try await connection.cancel() }
            case "ENTER_PIN", "ENTER_NEW_PIN":
                let question = event.json["question"].map { [JSON.Member("question", $0)] } ?? []
                let box = event.json["factor"]?.int == 1 ? secrets.second : secrets.pin
                guard let secret = box?.take() else {
                    _ = try await connection.cancel()
                    continue
                }
                let answer = event.name == "ENTER_PIN" ? "SET_PIN" : "SET_NEW_PIN"
                _ = try await connection.send(answer, question, value: secret)
            default:
                if event.answers(id), let refusal = event.message.refusal { throw refusal }
            }
        }
        throw connection.ending ?? .closed
    }
}
