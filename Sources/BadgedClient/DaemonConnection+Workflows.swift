// SPDX-License-Identifier: Apache-2.0
import Secrets
import Synchronization

/// How a PIN change ended.
public struct ChangePINResult: Sendable, Equatable {
    /// The card has confirmed the new PIN.
    public var success: Bool
    /// A name from the list of failure reasons.
    public var reason: String?

    public init(success: Bool, reason: String? = nil) {
        (self.success, self.reason) = (success, reason)
    }
}

/// Whole workflows in one call. While one runs, it reads the connection's `events`; nobody else should.
extension DaemonConnection {
    /// RUN_CHANGE_PIN from its start to its end.
    ///
    /// When the calling task is cancelled, so is the workflow.
    /// - Parameters:
    ///   - reader: name of the reader to use; nil: the first with an eID card.
    ///   - user: answers the questions.
    /// - Returns: how it ended, also when the user has cancelled it.
    /// - Throws: a refusal, the end of the connection, or `cancelled`.
    public func changePIN(
        reader: String? = nil,
        user: some WorkflowUser
    ) async throws(ClientError) -> ChangePINResult {
        try await run(user) { connection throws(ClientError) in
            try await connection.startChangePIN(reader: reader)
        } ending: { message throws(ClientError) in
            switch message {
            case .changePINEnded(let success, let reason): ChangePINResult(success: success, reason: reason)
            case .changePINRefused(let error): throw .refused(error)
            default: nil
            }
        }
    }

    /// RUN_AUTH from its start to its end.
    ///
    /// When the calling task is cancelled, so is the workflow.
    /// - Parameters:
    ///   - tcTokenURL: the address at which the service offers its TcToken.
    ///   - reader: name of the reader to use; nil: the first with an eID card.
    ///   - developerMode: goes by the rules of test services, and takes no other.
    ///   - user: gives the consent and answers the questions.
    /// - Returns: how it ended, also when the user has cancelled it.
    /// - Throws: a refusal, the end of the connection, or `cancelled`.
    public func authenticate(
        tcTokenURL: String,
        reader: String? = nil,
        developerMode: Bool = false,
        user: some WorkflowUser
    ) async throws(ClientError) -> AuthenticationResult {
        try await run(user) { connection throws(ClientError) in
            try await connection.startAuthentication(
                tcTokenURL: tcTokenURL,
                reader: reader,
                developerMode: developerMode
            )
        } ending: { message throws(ClientError) in
            switch message {
            case .authEnded(let result): result
            case .authRefused(let error): throw .refused(error)
            default: nil
            }
        }
    }

    private func run<Result: Sendable>(
        _ user: some WorkflowUser,
        start: @escaping @Sendable (DaemonConnection) async throws(ClientError) -> RequestID,
        ending: @escaping @Sendable (ServerMessage) throws(ClientError) -> Result?
    ) async throws(ClientError) -> Result {
        let isCancelled = Atomic(false)
        // A task of its own: it still has to read how the workflow ends when the calling task is cancelled.
        let task = Task { () -> Swift.Result<Result, ClientError> in
            do throws(ClientError) {
                let id = try await start(self)
                // A CANCEL that was sent before the start has cancelled nothing.
                if isCancelled.load(ordering: .acquiring) { try await cancel() }
                return .success(try await converse(id, user, ending))
            } catch {
                return .failure(error)
            }
        }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            isCancelled.store(true, ordering: .releasing)
            Task { try? await cancel() }
        }
        if isCancelled.load(ordering: .acquiring), case .failure = result { throw .cancelled }
        return try result.get()
    }

    private func converse<Result: Sendable>(
        _ id: RequestID,
        _ user: some WorkflowUser,
        _ ending: (ServerMessage) throws(ClientError) -> Result?
    ) async throws(ClientError) -> Result {
        var question: Task<Void, Never>?
        defer { question?.cancel() }
        for await event in events {
            if let result = try ending(event.message) { return result }
            if event.answers(id), let refusal = ClientError(event.message) { throw refusal }
            if event.message.endsQuestion { question?.cancel() }
            switch event.message {
            case .insertCard(let error, let reader): await user.insertCard(error: error, reader: reader)
            case .enter(let kind, let error, let reader):
                let asked = SecretQuestion(kind: kind, reader: reader, error: error)
                question = Task { await ask(asked, user) }
            case .accessRights(let rights, nil): question = Task { await askForConsent(rights, user) }
            case .pause: question = Task { await askToGoOn(user) }
            case .status(let status): if let percent = status.progress { await user.progress(percent) }
            default: await user.other(event)
            }
        }
        throw self.ending ?? .closed
    }

    // What fails here fails because the connection has ended, which the events tell.

    private func ask(_ question: SecretQuestion, _ user: some WorkflowUser) async {
        if question.reader.hasKeypad {
            await user.typeOnKeypad(question)
            if !Task.isCancelled { _ = try? await enter(question.kind, nil) }
            return
        }
        let box = await user.answer(question)
        // Typed for a card that has gone meanwhile: not for the next one.
        guard !Task.isCancelled else { return }
        if let secret = box?.take() {
            _ = try? await enter(question.kind, secret)
        } else {
            _ = try? await cancel()
        }
    }

    private func askForConsent(_ rights: AccessRights, _ user: some WorkflowUser) async {
        guard let answer = try? await request("GET_CERTIFICATE"), case .certificate(let service) = answer.message
        else { return }
        let chosen = await user.agree(to: ConsentRequest(rights: rights, service: service))
        guard !Task.isCancelled else { return }
        let optional = chosen.map { Set($0).intersection(rights.optional).sorted() }
        if let optional, let answer = try? await request("SET_ACCESS_RIGHTS", Self.chat(optional)),
            case .accessRights(_, nil) = answer.message
        {
            _ = try? await accept()
        } else {
            _ = try? await cancel()
        }
    }

    private func askToGoOn(_ user: some WorkflowUser) async {
        let goesOn = await user.layCardBetter()
        guard !Task.isCancelled else { return }
        if goesOn { _ = try? await continueWorkflow() } else { _ = try? await cancel() }
    }
}

extension ServerMessage {
    /// The question before is answered or void.
    fileprivate var endsQuestion: Bool {
        switch self {
        case .insertCard, .enter, .pause: true
        default: false
        }
    }
}
