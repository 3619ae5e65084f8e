// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Text

/// A message that asks the user something. A feature's questions are its message types that conform to this.
protocol Prompt: NamedMessage {
    /// Asks the user and sends the answer. The task is cancelled when the question becomes void.
    func ask(_ question: OpenQuestion) async
}

/// A prompt that one command answers.
protocol Question: Prompt {
    /// Who can answer, such as `any WalletUser`.
    associatedtype User
    /// The number of the question. badged accepts an answer only for the open question. nil: the server has no numbers.
    var number: Int? { get }
    /// The name of the reader whose card gets the value; nil: no card gets one.
    var cardReader: String? { get }
    /// Asks the user; nil cancels the workflow. `previous` is the value that was sent before this question.
    func answer(by user: User, after previous: Submission?) async -> Answer?
}

/// The command that answers a question.
struct Answer {
    let command: String
    var members: [JSON.Member] = []
    /// The secret `value`; nil: the command has none.
    var value: SecretBox?
}

extension Question {
    var cardReader: String? { nil }

    func ask(_ open: OpenQuestion) async {
        guard let user = await open.user(as: User.self) else { return }
        guard let answer = await answer(by: user, after: open.previous) else {
            if open.isOpen { await open.cancel() }
            return
        }
        // A value typed for one card must not reach the next one.
        guard cardReader.map({ open.submit(self, reader: $0) }) ?? open.isOpen else { return }
        let members = JSON.question(number) + answer.members
        guard let box = answer.value else {
            _ = try? await open.connection.send(answer.command, members)
            return
        }
        guard let value = box.take() else { return await open.cancel() }
        _ = try? await open.connection.send(answer.command, members, value: value)
    }
}

/// A question while the user is asked.
struct OpenQuestion: Sendable {
    fileprivate let workflow: Workflow
    fileprivate let number: Int
    /// The name of the message that asks.
    fileprivate let name: String
    /// The value that was sent before this question; nil when there was none.
    let previous: Submission?

    var connection: DaemonConnection { workflow.connection }

    /// The user, who must be able to answer. Otherwise the workflow is cancelled.
    func user<User>(as type: User.Type) async -> User? {
        if let user = workflow.user as? User { return user }
        await cancel(because: .unexpectedAnswer(name))
        return nil
    }

    /// Whether the answer may still be sent.
    var isOpen: Bool { workflow.isOpen(number) }

    /// Closes the question because its answer, a value for the card in `reader`, is about to be sent. Returns false
    /// when the question is void: then the value must not be sent.
    func submit(_ prompt: any Prompt, reader: String) -> Bool {
        workflow.submit(Submission(prompt: prompt, reader: reader), number)
    }

    /// Cancels the workflow. `failure` is nil when the user cancels it.
    func cancel(because failure: ClientError? = nil) async { await workflow.cancel(because: failure) }
}

/// A value that was sent to the card.
struct Submission: Sendable {
    /// The question that the value answers.
    let prompt: any Prompt
    /// The name of the reader that holds the card.
    let reader: String
    /// Whether the card has left the reader since then.
    var cardLeft = false
    /// What badged has said about the value since then; nil: nothing.
    var verdict: LastAnswer?
}

/// A message that says what happened to the value that was sent last.
protocol SubmissionVerdict: NamedMessage {
    var verdict: LastAnswer { get }
}

/// Runs one workflow: passes the questions of badged to the user and sends the answers.
///
/// One question is open at a time. An answer is sent only while its question is open, and only once.
final class Workflow: Sendable {
    private struct State {
        var isCancelled = false
        /// Whether nothing is to be cancelled any more.
        var isOver = false
        /// The task that asks the user the open question.
        var question: Task<Void, Never>?
        /// Counts the questions that were opened or closed. The answer to a question with a lower number is dropped.
        var number = 0
        var submission: Submission?
        /// Why this side has cancelled the workflow; nil when the user has cancelled it.
        var failure: ClientError?
    }

    let connection: DaemonConnection
    let user: any WorkflowUser
    private let state = Mutex(State())

    init(_ connection: DaemonConnection, _ user: any WorkflowUser) { (self.connection, self.user) = (connection, user) }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Notes the end. A CANCEL after it would reach the next workflow of the connection.
    func end() { state.withLock { $0.isOver = true } }

    /// Closes the open question and sends CANCEL, unless the workflow is over. The final message still follows.
    func cancel(because failure: ClientError? = nil) async {
        let (isOver, question) = state.withLock { state in
            state.isCancelled = true
            if state.failure == nil { state.failure = failure }
            state.number += 1
            return (state.isOver, state.question.take())
        }
        question?.cancel()
        guard !isOver else { return }
        // Sending fails only when the connection has ended, and the end of the events says so.
        _ = try? await connection.cancel()
    }

    /// Reads the events up to the final message of the workflow.
    ///
    /// - Parameters:
    ///   - id: the command that started the workflow; nil when a browser started it.
    ///   - final: the message type that ends the workflow.
    /// - Returns: how the workflow ended.
    /// - Throws: a refusal, the end of the connection, or why this side has cancelled the workflow.
    func run<Final: WorkflowMessage>(_ id: RequestID?, until final: Final.Type) async throws(ClientError)
        -> Final.Outcome
    {
        defer { closeQuestion() }
        var progress: Int?
        let inbox = connection.link.inbox
        var earlier = inbox.earlierEvents
        // badged has not yet said that the workflow has begun.
        var isStarting = id != nil
        while let event = await inbox.nextWorkflowEvent() {
            earlier -= 1
            // What badged could not read then is the start.
            let isUnreadStart = isStarting && earlier < 0 && event.isAboutUnreadLine
            switch event.message {
            case let message as Final:
                if let outcome = message.outcome {
                    if let failure = state.withLock({ $0.failure }) { throw failure }
                    return outcome
                }
                isStarting = false
                await user.other(event)
            case let refusal as Refusal where isUnreadStart || isEnd(refusal, event, id, final):
                if case .notServed? = inbox.workflowEnding { continue }
                throw refusal.reason
            case let message as UnreadableMessage:
                switch MessageTable.type(message.name) {
                case is any WorkflowMessage.Type: throw message.malformed
                case is any Prompt.Type: await cancel(because: message.malformed)
                default: await user.other(event)
                }
            case let reader as Reader:
                if takesNote(ofRemovalFrom: reader) { await user.cardLeft(reader: reader.name) }
                await user.other(event)
            case _ where isCancelled: await user.other(event)
            case let message as InsertCard:
                closeQuestion()
                state.withLock { $0.submission?.cardLeft = true }
                await user.insertCard(error: message.error, reader: message.reader)
            case let prompt as any Prompt: open(prompt, event.name)
            case let message as any SubmissionVerdict:
                state.withLock { $0.submission?.verdict = message.verdict }
                await user.other(event)
            case let status as WorkflowStatus:
                guard let percent = status.progress, percent != progress else { continue }
                progress = percent
                await user.progress(percent)
            default: await user.other(event)
            }
        }
        let ending = inbox.workflowEnding ?? .closed
        // The connection is still open, so badged would go on with the workflow.
        if ending == .unreadEvents { _ = try? await connection.cancel() }
        throw ending
    }

    /// Whether a refusal ends the workflow: the refused start, or an internal error of badged.
    private func isEnd<Final: WorkflowMessage>(
        _ refusal: Refusal,
        _ event: Event,
        _ id: RequestID?,
        _ final: Final.Type
    ) -> Bool {
        refusal.name == "INTERNAL_ERROR" || final.names.contains(refusal.name) || (id.map(event.answers) ?? false)
    }

    /// Notes that a card has left while it worked. Returns whether the user should know.
    private func takesNote(ofRemovalFrom reader: Reader) -> Bool {
        state.withLock { state in
            guard let submission = state.submission, !submission.cardLeft, reader.card == nil,
                submission.reader == reader.name
            else { return false }
            state.submission?.cardLeft = true
            // badged itself takes the card out of a virtual reader.
            return state.question == nil && !state.isCancelled && !reader.isInsertable
        }
    }

    // MARK: Questions

    private func open(_ prompt: any Prompt, _ name: String) {
        closeQuestion()
        state.withLock { state in
            guard !state.isCancelled else { return }
            state.number += 1
            // After PAUSE the card still works on the value.
            let previous = prompt is Pause ? nil : state.submission.take()
            let question = OpenQuestion(workflow: self, number: state.number, name: name, previous: previous)
            state.question = Task { await prompt.ask(question) }
        }
    }

    private func closeQuestion() {
        let question = state.withLock { state in
            state.number += 1
            return state.question.take()
        }
        question?.cancel()
    }

    fileprivate func isOpen(_ number: Int) -> Bool { state.withLock { $0.number == number } }

    fileprivate func submit(_ submission: Submission, _ number: Int) -> Bool {
        state.withLock { state in
            guard state.number == number else { return false }
            state.question = nil
            state.submission = submission
            return true
        }
    }
}

extension UnreadableMessage {
    fileprivate var malformed: ClientError { .malformed(.unusable(member: member, of: name)) }
}

extension Event {
    /// Whether a workflow that has sent a message of this name waits for an answer.
    package static func isQuestion(_ name: String) -> Bool { MessageTable.type(name) is any Prompt.Type }

    /// true: a workflow has begun; false: it has ended; nil: the message is another one.
    package var isWorkflowRunning: Bool? {
        guard MessageTable.type(name) is any WorkflowMessage.Type else { return nil }
        guard let message = message as? any WorkflowMessage else { return false }
        return message.isStart
    }
}

extension WorkflowMessage {
    fileprivate var isStart: Bool { outcome == nil }
}
