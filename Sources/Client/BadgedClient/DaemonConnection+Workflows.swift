// SPDX-License-Identifier: Apache-2.0

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
            try Self.endOfAuthentication(message)
        }
    }

    /// The next authentication that a browser begins: waits for it, and runs it to its end. `setUserInterface(true)` comes
    /// first; what browsers begin between two calls waits for the second.
    ///
    /// - Parameter user: gives the consent and answers the questions.
    /// - Returns: how it ended, also when the user has cancelled it. The browser is told by badged.
    /// - Throws: the end of the connection, or `cancelled`.
    public func authenticateForBrowser(user: some WorkflowUser) async throws(ClientError) -> AuthenticationResult {
        for await event in events {
            await user.other(event)
            guard event.message == .authStarted else { continue }
            return try await run(user, start: nil, ending: Self.endOfAuthentication)
        }
        throw ending ?? .cancelled
    }

    @Sendable private static func endOfAuthentication(
        _ message: ServerMessage
    ) throws(ClientError) -> AuthenticationResult? {
        switch message {
        case .authEnded(let result): result
        case .authRefused(let error): throw .refused(error)
        default: nil
        }
    }

    private func run<Result: Sendable>(
        _ user: some WorkflowUser,
        start: (@Sendable (DaemonConnection) async throws(ClientError) -> RequestID)?,
        ending: @escaping @Sendable (ServerMessage) throws(ClientError) -> Result?
    ) async throws(ClientError) -> Result {
        let dialogue = Dialogue(self, user)
        // A task of its own: it still has to read how the workflow ends when the calling task is cancelled.
        let task = Task { () -> Swift.Result<Result, ClientError> in
            var id: RequestID?
            do throws(ClientError) {
                id = try await start?(self)
            } catch {
                // The end of the events says it too, after what came before it, such as that badged is full.
                guard error.isEnd else { return .failure(error) }
            }
            do throws(ClientError) {
                // A CANCEL that was sent before the start has cancelled nothing.
                if dialogue.isCancelled { _ = try? await cancel() }
                return .success(try await dialogue.converse(id, ending))
            } catch {
                return .failure(error)
            }
        }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            Task { await dialogue.cancel() }
        }
        if Task.isCancelled, case .failure = result { throw .cancelled }
        return try result.get()
    }
}
