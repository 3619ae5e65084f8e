// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import Wire

/// A request of a workflow to its client for a value.
package protocol Prompt: Sendable {
    associatedtype Answer: Sendable

    /// The name of the message that asks, which is also the `state` of GET_STATUS, such as `ENTER_PIN`.
    var name: String { get }

    /// Returns the message that asks. `error` says what was wrong with the last value.
    @Loop func message(_ number: Int, to session: Session, error: String?) -> any Message

    /// Whether the subject of the prompt, such as a card in its reader, still exists.
    @Loop var isCurrent: Bool { get }

    /// Handles a command that answers prompts of several kinds, such as SET_PIN: `CommandSpec(answering:)`.
    /// - Returns: `.badState` if the command does not answer this prompt.
    @Loop static func answer(_ open: OpenPrompt<Self>, with command: Command, named name: String) -> CommandOutcome
}

extension Prompt {
    package var isCurrent: Bool { true }

    @Loop package static func answer(
        _ open: OpenPrompt<Self>,
        with command: Command,
        named name: String
    ) -> CommandOutcome {
        .badState
    }
}

/// A prompt that shows something, and waits for a command without a value.
package protocol AcknowledgedPrompt: Prompt where Answer == Void {
    /// The command that answers: ACCEPT by default.
    static var acknowledgement: String { get }
}

extension AcknowledgedPrompt {
    package static var acknowledgement: String { "ACCEPT" }

    @Loop package static func answer(
        _ open: OpenPrompt<Self>,
        with command: Command,
        named name: String
    ) -> CommandOutcome {
        guard name == acknowledgement, open.isMeant(by: command) else { return .badState }
        open.answer(())
        return .answered
    }
}

extension CommandSpec {
    /// Makes a command that answers prompts. The open prompt decides whether it is meant, and takes the value.
    package init(answering name: String, permission: Permissions = .cards) {
        self.init(name, permission: permission) { session, command in
            session.workflow?.openPrompt?.take(command, named: name) ?? .badState
        }
    }
}

/// The reason why a prompt got no answer.
package enum Interruption: Error, Sendable {
    /// CANCEL, a closed connection, or the end of the daemon.
    case cancelled
    /// The subject of the prompt no longer exists.
    case outdated
    /// The client has not answered in time. `[server] prompt_timeout`.
    case timedOut
}

/// A prompt that waits for its answer.
@Loop package final class OpenPrompt<P: Prompt> {
    /// The number of the prompt in the connection, from 1.
    package let number: Int
    /// The prompt, which may change while it is open. For example, the client edits a consent before ACCEPT.
    package var prompt: P
    private let workflow: Workflow
    private let continuation: CheckedContinuation<Result<P.Answer, Interruption>, Never>

    fileprivate init(
        _ number: Int,
        _ prompt: P,
        _ workflow: Workflow,
        _ continuation: CheckedContinuation<Result<P.Answer, Interruption>, Never>
    ) {
        (self.number, self.prompt, self.workflow, self.continuation) = (number, prompt, workflow, continuation)
    }

    package func answer(_ answer: P.Answer) { close(.success(answer)) }

    /// Whether a command is for this prompt. With another number in `question`, it is the answer to an earlier one.
    package func isMeant(by command: Command) -> Bool {
        switch command.int("question") {
        case .missing: true
        case .invalid: false
        case .value(let number): number == self.number
        }
    }

    /// Repeats the question as the direct answer to a command whose value was wrong.
    package func refuse(_ command: Command, _ error: String) {
        workflow.session.answer(prompt.message(number, to: workflow.session, error: error), to: command)
    }

    fileprivate func close(_ result: Result<P.Answer, Interruption>) {
        guard workflow.openPrompt === self else { return }
        workflow.openPrompt = nil
        continuation.resume(returning: result)
    }
}

/// An open prompt of any kind, as its workflow sees it.
@Loop protocol AnyOpenPrompt: AnyObject {
    var name: String { get }
    var isCurrent: Bool { get }
    func interrupt(_ interruption: Interruption)
    func take(_ command: Command, named name: String) -> CommandOutcome
}

extension OpenPrompt: AnyOpenPrompt {
    var name: String { prompt.name }
    var isCurrent: Bool { prompt.isCurrent }
    func interrupt(_ interruption: Interruption) { close(.failure(interruption)) }
    func take(_ command: Command, named name: String) -> CommandOutcome { P.answer(self, with: command, named: name) }
}

extension Workflow {
    /// Asks the client and waits for the answer, at most for `ServerLimits.promptTimeout`.
    package func ask<P: Prompt>(_ prompt: P) async throws(Interruption) -> P.Answer {
        guard !isCancelled else { throw .cancelled }
        guard prompt.isCurrent else { throw .outdated }
        let number = session.nextPromptNumber()
        // A wrong answer does not extend the time, so that no client can hold a card without end.
        let alarm = Loop.Alarm { [weak self] in self?.openPrompt?.interrupt(.timedOut) }
        alarm.set(after: Int64(session.server.limits.promptTimeout / .milliseconds(1)))
        defer { alarm.cancel() }
        let result = await withCheckedContinuation { continuation in
            openPrompt = OpenPrompt(number, prompt, self, continuation)
            session.push(prompt.message(number, to: session, error: nil))
        }
        return try result.get()
    }

    /// Returns the open prompt if the prompt has this type.
    package func prompt<P: Prompt>(_ type: P.Type = P.self) -> OpenPrompt<P>? { openPrompt as? OpenPrompt<P> }
}
