// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Text
import Wire

/// When `badgectl send` has done its work: badgectl(1), send.
struct SendProgress {
    /// Messages that only a command can answer.
    private static let questions: Set<String> = [
        "ACCESS_RIGHTS", "ENTER_CAN", "ENTER_NEW_PIN", "ENTER_PIN", "ENTER_PUK", "PAUSE",
    ]
    private static let workflows: Set<String> = ["AUTH", "CHANGE_PIN"]

    private let wanted: String?
    private let hasTime: Bool
    private var hasSeenWanted = false
    private var last: RequestID?
    private var isAllAnswered = false
    private var isRunning = false
    /// The question that was open when all was answered, or came later.
    private var question: String?
    private var isOutOfTime = false

    /// - wanted: `--wait`; hasTime: whether `--for` is given.
    init(wanted: String?, hasTime: Bool) { (self.wanted, self.hasTime) = (wanted, hasTime) }

    mutating func inputEnded(_ id: RequestID) { last = id }

    mutating func timeOut() { isOutOfTime = true }

    /// Takes note of one message; true for the answer to our own last command, which is nobody's business.
    mutating func take(_ event: Event) -> Bool {
        if let last, event.answers(last) {
            isAllAnswered = true
            if case .status(let status) = event.message {
                isRunning = status.workflow != nil
                question = status.state
            }
            return true
        }
        let name = event.name
        if name == wanted { hasSeenWanted = true }
        if Self.workflows.contains(name) {
            isRunning = !["error", "success", "result", "url"].contains { event.json[$0] != nil }
        } else if isAllAnswered, Self.questions.contains(name) {
            question = name
        }
        return false
    }

    enum Ending: Equatable {
        case done
        case failed(Failure)
    }

    /// nil: not yet.
    var ending: Ending? {
        if let wanted {
            if isAllAnswered, hasSeenWanted { return .done }
            guard isOutOfTime else { return nil }
            return .failed(Failure(.failed, "no \(wanted) came in time", hint: "see the messages above"))
        }
        if hasTime { return isOutOfTime ? .done : nil }
        guard isAllAnswered else { return nil }
        guard isRunning else { return .done }
        guard let question, Self.questions.contains(question) else { return nil }
        let hint = "keep the input open until the workflow has ended, or end with --wait \(question)"
        return .failed(Failure(.failed, "the workflow waits after \(question), but the input has ended", hint: hint))
    }
}
