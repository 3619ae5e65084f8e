// SPDX-License-Identifier: Apache-2.0
import Secrets
import Synchronization

/// One workflow between badged and its user. badged leads: every question is one of its messages, an answer belongs to
/// the question that was open when it was asked for, and no value goes out twice.
final class Dialogue: Sendable {
    /// The last value that went to the card.
    private struct Submission {
        var question: SecretQuestion
        var cardLeft = false

        /// What the next question tells about it.
        func outcome(before next: SecretQuestion) -> LastAnswer.Outcome {
            let kind = question.kind
            if kind == .pin, let before = question.triesLeft, let now = next.triesLeft, now < before { return .wrong }
            if cardLeft { return .void }
            switch kind {
            case .pin: return next.kind == .newPIN ? .accepted : .void
            case .can, .puk: return next.kind == kind ? .wrong : .accepted
            case .newPIN: return .void
            }
        }
    }

    private struct State {
        var isCancelled = false
        /// The user is being asked.
        var question: Task<Void, Never>?
        /// How many times it was opened or closed: what a task of another turn brings is void.
        var turn = 0
        var submission: Submission?
        /// Why this side has given it up.
        var failure: ClientError?
    }

    private let connection: DaemonConnection
    private let user: any WorkflowUser
    private let state = Mutex(State())

    init(_ connection: DaemonConnection, _ user: any WorkflowUser) { (self.connection, self.user) = (connection, user) }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    // What cannot be sent fails because the connection has ended, which the events tell.

    /// The open question is void, nothing more is asked; badged's final message follows.
    func cancel(because failure: ClientError? = nil) async {
        let question = state.withLock { state in
            state.isCancelled = true
            if state.failure == nil { state.failure = failure }
            state.turn += 1
            return state.question.take()
        }
        question?.cancel()
        _ = try? await connection.cancel()
    }

    /// Reads the events up to the final message, which `ending` knows. `id` marks the command that has begun it; nil: a
    /// browser has.
    func converse<Result>(
        _ id: RequestID?,
        _ ending: (ServerMessage) throws(ClientError) -> Result?
    ) async throws(ClientError) -> Result {
        defer { close() }
        var progress: Int?
        for await event in connection.events {
            if let result = try ending(event.message) {
                if let failure = state.withLock({ $0.failure }) { throw failure }
                return result
            }
            if id.map(event.answers) ?? false, let refusal = ClientError(event.message) { throw refusal }
            switch event.message {
            case .internalError(let error): throw .refused(error)
            case .unreadable(let name, let member): try await misunderstood(name, member, event)
            case .reader(let reader):
                if hasLeft(reader) { await user.cardLeft(reader: reader.name) }
                await user.other(event)
            case _ where isCancelled: await user.other(event)
            case .insertCard(let error, let reader):
                close()
                state.withLock { $0.submission?.cardLeft = true }
                await user.insertCard(error: error, reader: reader)
            case .enter(var question):
                close()
                let submission = state.withLock { $0.submission.take() }
                if let submission, question.error == nil {
                    let outcome = submission.outcome(before: question)
                    question.last = LastAnswer(kind: submission.question.kind, outcome: outcome)
                }
                open { [question] turn in await self.ask(question, turn) }
            case .accessRights(let rights, nil): open { await self.askForConsent(rights, $0) }
            case .pause:
                close()
                open { await self.askToGoOn($0) }
            case .status(let status):
                guard let percent = status.progress, percent != progress else { continue }
                progress = percent
                await user.progress(percent)
            default: await user.other(event)
            }
        }
        throw connection.ending ?? .closed
    }

    /// A known message without what it should have: a question that nobody can answer, or an end that nobody can tell.
    private func misunderstood(_ name: String, _ member: String, _ event: Event) async throws(ClientError) {
        let error = ClientError.malformed("\(name) without a usable \(member)")
        switch name {
        case "AUTH", "CHANGE_PIN": throw error
        case "ACCESS_RIGHTS", "PAUSE": await cancel(because: error)
        case _ where name.hasPrefix("ENTER_"): await cancel(because: error)
        default: await user.other(event)
        }
    }

    /// Takes note of a card that leaves while it works; true when that is news for the user.
    private func hasLeft(_ reader: Reader) -> Bool {
        state.withLock { state in
            guard let submission = state.submission, !submission.cardLeft, reader.card == nil,
                submission.question.reader.name == reader.name
            else { return false }
            state.submission?.cardLeft = true
            // The card of a virtual reader goes back to its shelf: badged's doing.
            return state.question == nil && !state.isCancelled && !reader.isInsertable
        }
    }

    // MARK: Questions

    private func open(_ body: @escaping @Sendable (_ turn: Int) async -> Void) {
        state.withLock { state in
            guard !state.isCancelled else { return }
            state.turn += 1
            state.question = Task { [turn = state.turn] in await body(turn) }
        }
    }

    /// The open question, if any, is answered or void.
    private func close() {
        let question = state.withLock { state in
            state.turn += 1
            return state.question.take()
        }
        question?.cancel()
    }

    /// The user has answered; false when that was of no use any more. `submission`: a value goes to the card.
    private func isAnswered(_ turn: Int, _ submission: Submission? = nil) -> Bool {
        state.withLock { state in
            guard state.turn == turn else { return false }
            if let submission { (state.question, state.submission) = (nil, submission) }
            return true
        }
    }

    private func ask(_ question: SecretQuestion, _ turn: Int) async {
        var box: SecretBox?
        let hasAnswer: Bool
        if question.reader.hasKeypad {
            hasAnswer = await user.typeOnKeypad(question)
        } else {
            box = await user.answer(question)
            hasAnswer = box != nil
        }
        // Typed for a card that has gone meanwhile: not for the next one. What crosses is kept apart by its number.
        guard isAnswered(turn, hasAnswer ? Submission(question: question) : nil) else { return }
        guard hasAnswer else { return await cancel() }
        _ = try? await connection.answer(question, box?.take())
    }

    private func askForConsent(_ rights: AccessRights, _ turn: Int) async {
        do throws(ClientError) {
            let request = ConsentRequest(rights: rights, service: try await connection.certificate())
            let chosen = await user.agree(to: request)
            guard isAnswered(turn) else { return }
            guard let chosen else { return await cancel() }
            let optional = Set(chosen).intersection(rights.optional)
            if optional != Set(rights.effective).intersection(rights.optional) {
                try await connection.setAccessRights(optional.sorted())
            }
            try await connection.accept()
        } catch {
            if isAnswered(turn) { await cancel(because: error) }
        }
    }

    private func askToGoOn(_ turn: Int) async {
        let goesOn = await user.layCardBetter()
        guard isAnswered(turn) else { return }
        if goesOn { _ = try? await connection.continueWorkflow() } else { await cancel() }
    }
}
