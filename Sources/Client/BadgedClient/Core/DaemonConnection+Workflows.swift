// SPDX-License-Identifier: Apache-2.0
import Text

extension DaemonConnection {
    /// Runs a workflow from its start to its final message. Cancelling the calling task cancels the workflow.
    ///
    /// - Parameters:
    ///   - final: the message type that ends the workflow.
    ///   - user: answers the questions.
    ///   - start: sends the command that starts the workflow.
    /// - Returns: how the workflow ended.
    /// - Throws: a refusal, the end of the connection, why this side has cancelled the workflow, or `workflowRunning`.
    func runWorkflow<Final: WorkflowMessage>(
        until final: Final.Type,
        _ user: any WorkflowUser,
        start: @autoclosure @escaping @Sendable () async throws(ClientError) -> RequestID
    ) async throws(ClientError) -> Final.Outcome {
        try link.inbox.beginWorkflow()
        defer { link.inbox.endWorkflow() }
        return try await run(until: final, user, start: start)
    }

    /// Runs a workflow whose queue of events exists.
    ///
    /// - Parameters:
    ///   - final: the message type that ends the workflow.
    ///   - user: answers the questions.
    ///   - start: sends the command that starts the workflow; nil when it runs already.
    /// - Returns: how the workflow ended.
    /// - Throws: a refusal, the end of the connection, or why this side has cancelled the workflow.
    func run<Final: WorkflowMessage>(
        until final: Final.Type,
        _ user: any WorkflowUser,
        start: (@Sendable () async throws(ClientError) -> RequestID)?
    ) async throws(ClientError) -> Final.Outcome {
        let workflow = Workflow(self, user)
        // A task of its own: it reads the final message even when the calling task is cancelled.
        let task = Task { () -> Result<Final.Outcome, ClientError> in
            defer { workflow.end() }
            var id: RequestID?
            do throws(ClientError) {
                id = try await start?()
            } catch {
                // When the connection has ended, the last events say more, such as that badged serves no more clients.
                guard error.isEnd else { return .failure(error) }
            }
            // A CANCEL that was sent before the start has cancelled nothing.
            if workflow.isCancelled { _ = try? await cancel() }
            return await Result { () async throws(ClientError) in try await workflow.run(id, until: final) }
        }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            Task { await workflow.cancel() }
        }
        if Task.isCancelled, case .failure = result { throw .cancelled }
        return try result.get()
    }
}
