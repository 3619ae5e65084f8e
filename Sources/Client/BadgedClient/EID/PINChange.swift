// SPDX-License-Identifier: Apache-2.0
import Text

/// A PIN change has begun or ended: CHANGE_PIN.
public struct ChangePINMessage: ServerMessage, WorkflowMessage {
    static let names = ["CHANGE_PIN"]

    /// How the PIN change ended; nil when it has just begun.
    public var outcome: ChangePINResult?

    public init(outcome: ChangePINResult?) { self.outcome = outcome }

    init(_ json: JSON) throws(Malformed) {
        guard json["success"] != nil else { return }
        outcome = ChangePINResult(
            success: try json.required("success", as: \.bool),
            reason: json["reason"]?.string
        )
    }
}

/// How a PIN change ended.
public struct ChangePINResult: Sendable, Equatable {
    /// Whether the card has confirmed the new PIN.
    public var success: Bool
    /// A name from the list of failure reasons, docs/protocol/eid.md.
    public var reason: String?
}

extension DaemonConnection {
    /// Changes the PIN of an eID card: runs RUN_CHANGE_PIN from its start to its end. A connection runs one
    /// workflow at a time. Cancelling the calling task cancels the workflow.
    ///
    /// - Parameters:
    ///   - reader: name of the reader to use; nil: the first with an eID card.
    ///   - user: answers the questions.
    /// - Returns: how the workflow ended, also after the user has cancelled it.
    /// - Throws: a refusal, `workflowRunning`, the end of the connection, or `cancelled`.
    public func changePIN(
        reader: String? = nil,
        user: some EIDUser
    ) async throws(ClientError) -> ChangePINResult {
        try await runWorkflow(until: ChangePINMessage.self, user, start: await self.startChangePIN(reader: reader))
    }

    /// RUN_CHANGE_PIN: starts a PIN change. Its questions and its end, `ChangePINMessage`, are events.
    ///
    /// - Parameters:
    ///   - reader: name of the reader to use; nil: the first with an eID card.
    ///   - status: whether badged sends STATUS during the workflow; nil: as before on this connection, at first true.
    /// - Returns: identifies a refusal.
    /// - Throws: when the command cannot be sent.
    @discardableResult
    public func startChangePIN(reader: String? = nil, status: Bool? = nil) async throws(ClientError) -> RequestID {
        var members: [JSON.Member] = []
        if let reader { members.append(.init("reader", .string(reader))) }
        if let status { members.append(.init("status", .bool(status))) }
        return try await send("RUN_CHANGE_PIN", members)
    }
}
