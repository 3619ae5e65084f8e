// SPDX-License-Identifier: Apache-2.0
import Text

/// A message that says that a workflow has begun or ended.
protocol WorkflowMessage: NamedMessage {
    associatedtype Outcome: Sendable
    /// How the workflow ended; nil when it has just begun.
    var outcome: Outcome? { get }
}

/// What the workflow of this connection does: STATUS.
public struct WorkflowStatus: ServerMessage, NamedMessage {
    static let names = ["STATUS"]

    /// `CHANGE_PIN` or `AUTH`; nil when no workflow runs.
    public var workflow: String?
    /// Percent.
    public var progress: Int?
    /// The message whose answer the workflow waits for, such as `ENTER_PIN`; nil when it waits for none.
    public var state: String?

    public init(workflow: String? = nil, progress: Int? = nil, state: String? = nil) {
        self.workflow = workflow
        self.progress = progress
        self.state = state
    }

    init(_ json: JSON) {
        workflow = json["workflow"]?.string
        progress = json["progress"]?.int
        state = json["state"]?.string
    }
}

/// The workflow needs a card: INSERT_CARD.
public struct InsertCard: ServerMessage, NamedMessage {
    static let names = ["INSERT_CARD"]
    static let errorIsRefusal = false

    /// Why the card in `reader` cannot be used, or why SET_CARD was refused.
    public var error: String?
    public var reader: String?

    public init(error: String? = nil, reader: String? = nil) { (self.error, self.reader) = (error, reader) }

    init(_ json: JSON) { self.init(error: json["error"]?.string, reader: json["reader"]?.string) }

    public var refusal: ClientError? { error.map(ClientError.refused) }
}

/// The workflow waits because the card has slipped: PAUSE. `continueWorkflow` resumes it.
public struct Pause: ServerMessage, Question {
    static let names = ["PAUSE"]

    /// `BadCardPosition`.
    public var cause: String

    public init(cause: String) { self.cause = cause }

    init(_ json: JSON) throws(Malformed) { self.init(cause: try json.required("cause", as: \.string)) }

    var number: Int? { nil }

    func answer(by user: any WorkflowUser, after _: Submission?) async -> Answer? {
        await user.repositionCard() ? Answer(command: "CONTINUE") : nil
    }
}
