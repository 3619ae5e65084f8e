// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Wire

/// A question of a workflow to its client.
package protocol Prompt: Sendable {
    associatedtype Answer: Sendable

    /// The name of the message that asks, which is also the `state` of GET_STATUS, such as `ENTER_PIN`.
    var name: String { get }

    /// The message that asks. `error` says what was wrong with the last value.
    @Loop func message(_ number: Int, to session: Session, error: String?) -> any Message

    /// Whether what the prompt is about is still there, such as a card in its reader.
    @Loop var isCurrent: Bool { get }
}

extension Prompt {
    package var isCurrent: Bool { true }
}

/// Why a prompt got no answer.
package enum Interruption: Error, Sendable {
    /// CANCEL, a closed connection, or the end of the daemon.
    case cancelled
    /// What the prompt was about is gone.
    case outdated
}

/// A prompt that waits for its answer.
@Loop package final class OpenPrompt<P: Prompt> {
    /// Counts the prompts of the connection, from 1.
    package let number: Int
    /// May be changed while it is open: a consent, for instance, is edited before it is accepted.
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
}

extension OpenPrompt: AnyOpenPrompt {
    var name: String { prompt.name }
    var isCurrent: Bool { prompt.isCurrent }
    func interrupt(_ interruption: Interruption) { close(.failure(interruption)) }
}

extension Workflow {
    /// Asks the client and waits for the answer.
    package func ask<P: Prompt>(_ prompt: P) async throws(Interruption) -> P.Answer {
        guard !isCancelled else { throw .cancelled }
        guard prompt.isCurrent else { throw .outdated }
        let number = session.nextPromptNumber()
        let result = await withCheckedContinuation { continuation in
            openPrompt = OpenPrompt(number, prompt, self, continuation)
            session.push(prompt.message(number, to: session, error: nil))
        }
        return try result.get()
    }

    /// The open prompt, when it is of this type.
    package func prompt<P: Prompt>(_ type: P.Type = P.self) -> OpenPrompt<P>? { openPrompt as? OpenPrompt<P> }
}
