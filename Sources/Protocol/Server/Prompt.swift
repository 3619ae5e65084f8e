// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Host
package import Text

/// A request of a workflow to its client for a value.
package protocol Prompt: Sendable {
    associatedtype Answer: Sendable

    /// The name of the message that asks, which is also the `state` of GET_STATUS, such as `ENTER_PIN`.
    var name: StaticString { get }

    /// Returns the message that asks, usually a `question`. `error` says why a command did not answer it; nil in the first
    /// message.
    @Loop func message(_ number: Int, to session: Session, error: Phrase?) -> any Message

    /// Whether the subject of the prompt, such as a card in its reader, still exists.
    @Loop var isCurrent: Bool { get }

    /// Returns the answer in a command such as SET_PIN: `CommandSpec(answering:)`.
    /// - Throws: `.badState` if the command does not answer this prompt. After any other failure the question is
    ///   repeated with its text.
    @Loop func answer(in call: Call) throws(Failure) -> Answer
}

extension Prompt {
    package var isCurrent: Bool { true }

    @Loop package func answer(in call: Call) throws(Failure) -> Answer { throw .badState }

    /// The message of a question: what was wrong with the last value, the number, and the members that `body` writes.
    package func question(
        _ number: Int,
        error: Phrase? = nil,
        isSecret: Bool = false,
        _ body: @escaping (inout JSONWriter) -> Void
    ) -> WrittenMessage {
        WrittenMessage(name, isSecret: isSecret) { object in
            if let error { object.member("error", error) }
            object.member("question", number)
            body(&object)
        }
    }
}

/// A prompt that shows something, and waits for a command without a value.
package protocol AcknowledgedPrompt: Prompt where Answer == Void {
    /// The command that answers: ACCEPT by default.
    static var acknowledgement: String { get }
}

extension AcknowledgedPrompt {
    package static var acknowledgement: String { "ACCEPT" }

    @Loop package func answer(in call: Call) throws(Failure) {
        guard call.name == Self.acknowledgement else { throw .badState }
    }
}

extension Failure {
    /// CANCEL, a closed connection, or the end of the daemon.
    package static var cancelled: Failure { Failure(.cancelled, "Cancelled") }
    /// The card of a prompt has left, so the client has to be asked again, about this card or another one.
    package static var cardLost: Failure { Failure(.cardLost, "The card was removed") }
    /// The client has not answered in time. `[server] prompt_timeout`.
    package static var timedOut: Failure { Failure(.timedOut, "The question was not answered in time") }
    /// The same while another user waits for the card. `[server] shared_prompt_timeout`.
    package static var awaited: Failure {
        Failure(.timedOut, "The question was not answered in time, and another user waits for the card")
    }
}

/// A prompt that waits for its answer.
@Loop package final class OpenPrompt<P: Prompt> {
    /// The number of the prompt in the connection, from 1.
    package let number: Int
    /// The prompt, which may change while it is open. For example, the client edits a consent before ACCEPT.
    package var prompt: P
    private let workflow: Workflow
    private let continuation: CheckedContinuation<Result<P.Answer, Failure>, Never>

    fileprivate init(
        _ number: Int,
        _ prompt: P,
        _ workflow: Workflow,
        _ continuation: CheckedContinuation<Result<P.Answer, Failure>, Never>
    ) {
        self.number = number
        self.prompt = prompt
        self.workflow = workflow
        self.continuation = continuation
    }

    package func answer(_ answer: P.Answer) { close(.success(answer)) }

    /// Whether a command is for this prompt. With another number in `question`, it is the answer to an earlier one.
    private func isMeant(by call: Call) -> Bool {
        call.command.value("question").map { $0.int == number } ?? true
    }

    func receive(_ call: Call) throws(Failure) {
        guard isMeant(by: call) else { throw .badState }
        do throws(Failure) {
            answer(try prompt.answer(in: call))
        } catch {
            guard error.code != .badState else { throw error }
            let question = prompt.message(number, to: workflow.session, error: error.message)
            workflow.session.answer(question, to: call)
        }
    }

    fileprivate func close(_ result: Result<P.Answer, Failure>) {
        guard workflow.openPrompt === self else { return }
        workflow.openPrompt = nil
        continuation.resume(returning: result)
    }
}

/// An open prompt of any kind, as its workflow sees it.
@Loop protocol AnyOpenPrompt: AnyObject {
    var name: String { get }
    var isCurrent: Bool { get }
    func interrupt(_ failure: Failure)
    func receive(_ call: Call) throws(Failure)
}

extension OpenPrompt: AnyOpenPrompt {
    var name: String { prompt.name.description }
    var isCurrent: Bool { prompt.isCurrent }
    func interrupt(_ failure: Failure) { close(.failure(failure)) }
}

extension Workflow {
    /// Asks the client and waits for the answer, at most for `ServerLimits.promptTimeout`. A cancelled task asks nothing,
    /// also if the workflow goes on: its answer has become useless.
    package func ask<P: Prompt>(_ prompt: P) async throws(Failure) -> P.Answer {
        guard !isCancelled, !Task.isCancelled else { throw .cancelled }
        guard prompt.isCurrent else { throw .cardLost }
        let number = session.nextPromptNumber()
        // A wrong answer does not extend the deadline, so that no client can hold a card indefinitely.
        let alarm = Loop.Alarm { [weak self] in self?.openPrompt?.interrupt(.timedOut) }
        alarm.set(after: Int64(session.server.limits.promptTimeout / .milliseconds(1)))
        defer { alarm.cancel() }
        let result = await withCheckedContinuation { continuation in
            openPrompt = OpenPrompt(number, prompt, self, continuation)
            session.push(prompt.message(number, to: session, error: nil))
        }
        return try result.get()
    }

    /// Begins or ends to count the time for questions while another user waits for the card.
    func limitPrompts() {
        let isLimited = isAwaited && openPrompt != nil
        if isLimited, sharedSince == nil {
            let limit = Int64(session.server.limits.sharedPromptTimeout / .milliseconds(1))
            sharedSince = Loop.now
            sharedAlarm.set(after: max(0, limit - sharedTime))
        } else if !isLimited, let since = sharedSince {
            sharedTime += Loop.now - since
            sharedSince = nil
            sharedAlarm.cancel()
        }
    }

    package func prompt<P: Prompt>(_ type: P.Type = P.self) -> OpenPrompt<P>? { openPrompt as? OpenPrompt<P> }
}
