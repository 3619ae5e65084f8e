// SPDX-License-Identifier: Apache-2.0
public import Text

/// The message types of M-Pin.
let mpinMessages: [any NamedMessage.Type] = [MPinMessage.self, MPinQuestion.self]

/// A workflow of M-Pin has begun or ended, or a command was answered: MPIN_STARTED, MPIN_RESULT.
public struct MPinMessage: ServerMessage, WorkflowMessage {
    static let names = ["MPIN_STARTED", "MPIN_RESULT"]

    /// The name of the command, such as `MPIN_SIGN`.
    public var operation: String
    /// MPIN_RESULT; nil when the workflow has just begun. docs/protocol/mpin.md, Messages.
    public var outcome: JSON?

    public init(operation: String, outcome: JSON? = nil) { (self.operation, self.outcome) = (operation, outcome) }

    init(_ json: JSON) throws(Malformed) {
        operation = try json.required("operation", as: \.string)
        outcome = json["msg"]?.string == "MPIN_RESULT" ? json : nil
    }
}

/// A question for the PIN of M-Pin, or for the second factor: ENTER_PIN and ENTER_NEW_PIN with `factor`.
public struct MPinQuestion: ServerMessage, NamedMessage {
    static let names = ["ENTER_PIN", "ENTER_NEW_PIN"]
    static let errorIsRefusal = false

    /// Whether the user chooses the value; otherwise it was chosen at the registration.
    public var isNew: Bool
    /// The identity, such as `alice@example.org`.
    public var userID: String
    /// The address of the service.
    public var backend: String
    /// 0: the PIN; 1: the second factor.
    public var factor: Int
    /// The number of digits of the PIN; nil for the second factor.
    public var pinLength: Int?
    /// Whether an empty second factor means that the user has none.
    public var isOptional = false
    /// Why the last value had a wrong form.
    public var error: String?
    /// The number of the question. badged accepts an answer only for the open question.
    public var number: Int?
}

extension MPinQuestion {
    init(_ json: JSON) throws(Malformed) {
        isNew = json["msg"]?.string == "ENTER_NEW_PIN"
        userID = json["userId"]?.string ?? ""
        backend = json["backend"]?.string ?? ""
        factor = try json.required("factor", as: \.int)
        pinLength = json["pinLength"]?.int
        error = json["error"]?.string
        number = json["question"]?.int
        isOptional = json["optional"]?.bool ?? false
    }
}

/// Answers the questions of `runMPin`. A user with a token under a card is also asked about the card.
public protocol MPinUser: CardUser {
    /// Returns the PIN or the second factor, or nil to cancel. The value is sent once and wiped. After a value of a
    /// wrong form the same question comes again.
    func answer(_ question: MPinQuestion) async -> SecretBox?
}

extension MPinQuestion: Question {
    func answer(by user: any MPinUser, after _: Submission?) async -> Answer? {
        await user.answer(self).map { Answer(command: isNew ? "SET_NEW_PIN" : "SET_PIN", value: $0) }
    }
}

extension DaemonConnection {
    /// Runs a command of M-Pin that is a workflow, from its start to MPIN_RESULT, which it returns. Cancelling the
    /// calling task cancels the workflow.
    public func runMPin(
        _ command: String,
        _ members: [JSON.Member] = [],
        user: any MPinUser
    ) async throws(ClientError) -> JSON {
        try await runWorkflow(until: MPinMessage.self, user, start: await self.send(command, members))
    }
}
