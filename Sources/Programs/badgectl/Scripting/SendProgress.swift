// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// Decides when `badgectl send` ends: badgectl(1), send.
struct SendProgress {
    private let wanted: String?
    private let hasTime: Bool
    private var hasSeenWanted = false
    private var last: RequestID?
    private var isAllAnswered = false
    private var isRunning = false
    /// The question that was open when everything was answered, or that came later.
    private var question: String?
    private var isOutOfTime = false

    /// - Parameters:
    ///   - wanted: the value of `--wait`.
    ///   - hasTime: whether `--for` was given.
    init(wanted: String?, hasTime: Bool) { (self.wanted, self.hasTime) = (wanted, hasTime) }

    /// Notes the end of the input. `id` identifies a last command of badgectl itself.
    mutating func inputEnded(_ id: RequestID) { last = id }

    mutating func timeOut() { isOutOfTime = true }

    /// Notes a message. Returns true for the answer to badgectl's own command, which is not shown.
    mutating func receive(_ event: Event) -> Bool {
        if let last, event.answers(last) {
            isAllAnswered = true
            if let status = event.message as? WorkflowStatus {
                isRunning = status.workflow != nil
                question = status.state
            }
            return true
        }
        let name = event.name
        if name == wanted { hasSeenWanted = true }
        if let isWorkflowRunning = event.isWorkflowRunning {
            isRunning = isWorkflowRunning
        } else if isAllAnswered, Event.isQuestion(name) {
            question = name
        }
        return false
    }

    enum Ending: Equatable {
        case done
        case failed(CommandFailure)
    }

    /// How the command ends; nil: not yet.
    var ending: Ending? {
        if let wanted {
            if isAllAnswered, hasSeenWanted { return .done }
            guard isOutOfTime else { return nil }
            return .failed(
                CommandFailure(
                    tr("no \(wanted) came in time"),
                    hint: tr("see the messages above, or wait longer with --for")
                )
            )
        }
        if hasTime { return isOutOfTime ? .done : nil }
        guard isAllAnswered else { return nil }
        guard isRunning else { return .done }
        guard let question, Event.isQuestion(question) else { return nil }
        let hint = tr("keep the input open until the workflow has ended, or end with --wait \(question)")
        return .failed(
            CommandFailure(tr("the workflow waits after \(question), but the input has ended"), hint: hint)
        )
    }
}
