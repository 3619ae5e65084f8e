// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import Secrets
import Wire
import Workflows

/// The workflow of a session: its task, what it waits for, and the way from its questions to messages and back.
@Loop final class RunningWorkflow: AuthenticationClient {
    let name: WorkflowName
    /// What the client may answer now; nil while the card works.
    private(set) var state: WaitingState?
    private(set) var progress = 0
    private unowned let session: Session
    private var task: Task<Void, Never>?
    private var pending: Pending?
    private var isCancelled = false
    /// Nobody is left to be sent back to the service.
    private(set) var hasLostBrowser = false
    private var isOver = false

    /// A question without an answer yet, bound to one stay of one card.
    private struct Pending {
        let number: Int
        let reader: Reader
        let insertion: Insertion?
        let continuation: CheckedContinuation<Result<SecretBox?, Interruption>, Never>
    }

    private var pause: CheckedContinuation<Void, Never>?
    /// What the client may change and accept while the state is ACCESS_RIGHTS.
    var consent: Consent?
    private var pendingConsent: CheckedContinuation<Result<Consent, Interruption>, Never>?

    init(_ name: WorkflowName, _ session: Session) {
        (self.name, self.session) = (name, session)
    }

    /// Runs `body` up to its first wait at once, so that the next command finds the workflow where it waits.
    func start(_ body: @escaping @Loop () async -> Void) {
        task = Task.immediate { @Loop in await body() }
        if isCancelled { task?.cancel() }
    }

    func cancel() {
        isCancelled = true
        state = nil
        task?.cancel()
        resume(.failure(.cancelled))
        resumePause()
        resumeConsent(.failure(.cancelled))
    }

    /// The browser that began it is gone.
    func browserLeft() {
        hasLostBrowser = true
        cancel()
    }

    // MARK: Cards of SET_CARD

    /// The card belongs to this workflow and goes back to its shelf with it, used or not.
    func hasPutCardIn() async {
        if isOver { await takeCardsBack() }
    }

    func takeCardsBack() async {
        isOver = true
        await session.server.registry.takeCardsBack(of: ObjectIdentifier(self))
    }

    // MARK: Answers

    /// The number and the reader of the open question.
    var question: (number: Int, reader: Reader)? { pending.map { ($0.number, $0.reader) } }

    func answer(_ secret: SecretBox?) {
        state = nil
        resume(.success(secret))
    }

    func continueAfterPause() {
        state = nil
        resumePause()
    }

    func accept(_ consent: Consent) {
        state = nil
        resumeConsent(.success(consent))
    }

    func readerChanged(_ reader: Reader?, named name: String) {
        guard let pending, pending.reader.name == name else { return }
        if reader !== pending.reader || reader?.insertion != pending.insertion {
            state = nil
            resume(.failure(.cardRemoved))
        }
    }

    private func resume(_ result: Result<SecretBox?, Interruption>) {
        let continuation = pending?.continuation
        pending = nil
        continuation?.resume(returning: result)
    }

    private func resumeConsent(_ result: Result<Consent, Interruption>) {
        let continuation = pendingConsent
        (pendingConsent, consent) = (nil, nil)
        continuation?.resume(returning: result)
    }

    private func resumePause() {
        pause?.resume()
        pause = nil
    }

    // MARK: WorkflowClient

    func waitForCard(announce: Bool, obstacles: [(CardObstacle, reader: String)]) {
        guard !isCancelled else { return }
        state = .insertCard
        if announce, obstacles.isEmpty { session.push(.insertCard(error: nil, reader: nil)) }
        for (obstacle, reader) in obstacles {
            session.push(.insertCard(error: obstacle.text(reader: reader), reader: reader))
        }
    }

    func cardFound() { state = nil }

    func ask(_ question: Question, _ reader: Reader) async throws(Interruption) -> SecretBox? {
        guard !isCancelled else { throw .cancelled }
        guard reader.insertion != nil else { throw .cardRemoved }
        let asked: WaitingState =
            switch question {
            case .pin: .enterPIN
            case .can: .enterCAN
            case .puk: .enterPUK
            case .newPIN: .enterNewPIN
            }
        state = asked
        session.questions += 1
        let number = session.questions
        session.push(.enter(asked, error: nil, question: number, reader: session.readerState(reader.name)))
        // The client can turn out to be gone in just this moment.
        guard !isCancelled else { throw .cancelled }
        let result = await withCheckedContinuation { continuation in
            pending = Pending(
                number: number,
                reader: reader,
                insertion: reader.insertion,
                continuation: continuation
            )
        }
        return try result.get()
    }

    func confirm(_ consent: Consent) async throws(Interruption) -> Consent {
        guard !isCancelled else { throw .cancelled }
        self.consent = consent
        state = .accessRights
        session.push(.accessRights(AccessRightsState(consent), error: nil))
        // The client can turn out to be gone in just this moment.
        guard !isCancelled else { throw .cancelled }
        let result = await withCheckedContinuation { pendingConsent = $0 }
        return try result.get()
    }

    func progress(_ percent: Int) {
        progress = percent
        tellStatus()
    }

    func paceStarts() {
        guard !isCancelled else { return }
        tellStatus()
    }

    private func tellStatus() {
        guard session.wantsStatus, session.level >= .two else { return }
        session.push(.status(workflow: name, progress: progress, state: nil), coalescing: "STATUS")
    }

    func pauseForBadCardPosition() async throws(Interruption) {
        guard !isCancelled else { throw .cancelled }
        guard session.level >= .three else { return }
        state = .pause
        session.push(.pause(cause: "BadCardPosition"))
        guard !isCancelled else { throw .cancelled }
        await withCheckedContinuation { pause = $0 }
        if isCancelled { throw .cancelled }
    }
}
