// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Readers
package import Server
package import Text

/// The common part of all card workflows: finds a card, uses the card, and begins again when the card is lost.
///
/// An answer of the client is bound to one insertion and used once: after any loss of the card the client is asked
/// again. docs/architecture.md, How one PIN moves.
@Loop package final class CardDialogue<Requirements: CardRequirements> {
    package let workflow: Workflow
    private let selection: CardSelection<Requirements>
    private var position: CardPosition
    /// How long the end of a cancelled workflow waits until the card is free, in milliseconds; nil: as long as it
    /// takes. A limit is for dialogues in which nothing depends on a single answer. The same holds if the task of `run`
    /// is cancelled and the workflow goes on.
    private let cancelLimit: Int64?
    /// The insertion whose card has not answered to the last value.
    package var unanswered: Insertion?
    /// The end of the workflow if the daemon ends before the card has answered; nil: none is true.
    package var abandonment: Failure?

    package init(
        _ registry: ReaderRegistry,
        _ workflow: Workflow,
        readerName: String?,
        _ requirements: Requirements,
        cancelLimit: Int64? = nil,
        now: @escaping Now
    ) {
        self.workflow = workflow
        self.cancelLimit = cancelLimit
        selection = CardSelection(registry, workflow, readerName: readerName, requirements)
        position = CardPosition(now: now)
    }

    /// Runs `body` with one card after another until `body` ends without the loss of its card: any failure but
    /// `.cardLost` is the end. Then the reader is free. Returns what `body` has returned.
    package func run<Value: Sendable>(
        _ body: @escaping @Loop (Requirements.Card) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        while true {
            do throws(Failure) {
                return try await runWithOneCard(body)
            } catch {
                guard error.code == .cardLost else { throw error }
            }
        }
    }

    private func runWithOneCard<Value: Sendable>(
        _ body: @escaping @Loop (Requirements.Card) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let (lease, card) = try await selection.acquire()
        // The work has a task of its own, which may ask a question before `wait` can cancel it.
        let isCancelled = Task.isCancelled
        let end = OneShot<Result<Value, Failure>>()
        let work = Task.immediate { @Loop in
            let result = await Result { () async throws(Failure) -> Value in
                guard !isCancelled else { throw .cancelled }
                return try await body(card)
            }
            _ = end.fill(result)
        }
        let session = workflow.session
        workflow.whenAbandoned = { [weak self] in
            guard let failure = self?.abandonment else { return false }
            Task { @Loop in
                await work.value
                await lease.release(removingVirtualCard: false)
                // The work needs its session until then.
                withExtendedLifetime(session) {}
            }
            return end.fill(.failure(failure))
        }
        defer { workflow.whenAbandoned = nil }
        let value: Value
        do throws(Failure) {
            value = try await wait(for: work, end).get()
        } catch {
            // The process ends, and may not wait for the card.
            if workflow.isAbandoned { throw error }
            let isLost = error.code == .cardLost
            await release(lease, after: work, removingVirtualCard: !isLost)
            if isLost, position.isBad {
                try await pauseForBadCardPosition()
                position.reset()
            }
            throw error
        }
        await lease.release(removingVirtualCard: true)
        return value
    }

    /// Waits for the end of the work with a card; with a limit only until the task is cancelled.
    private func wait<Value: Sendable>(
        for work: Task<Void, Never>,
        _ end: OneShot<Result<Value, Failure>>
    ) async -> Result<Value, Failure> {
        await withTaskCancellationHandler {
            if cancelLimit == nil { return await end.value }
            return await end.value(whenCancelled: .failure(.cancelled))
        } onCancel: {
            work.cancel()
        }
    }

    /// Releases the card as soon as the work with it has ended. With a limit a cancelled workflow waits no longer.
    private func release(_ lease: CardLease, after work: Task<Void, Never>, removingVirtualCard: Bool) async {
        guard workflow.isCancelled || Task.isCancelled, let cancelLimit else {
            return await lease.release(removingVirtualCard: removingVirtualCard)
        }
        let end = OneShot<Void>()
        Task { @Loop in
            await work.value
            await lease.release(removingVirtualCard: removingVirtualCard)
            // The workflow is the owner of the reader until now.
            withExtendedLifetime(workflow) { _ = end.fill(()) }
        }
        let alarm = Loop.Alarm { end.fill(()) }
        alarm.set(after: cancelLimit)
        // In a task that is not cancelled.
        await Task { @Loop in await end.value(whenCancelled: ()) }.value
        alarm.cancel()
    }

    // MARK: The position of the card

    /// Counts losses of the card in steps that need a steady field. PAUSE is sent after too many of them.
    package func cardPosition(isGood: Bool) {
        if isGood { position.reset() } else { position.lost() }
    }

    private func pauseForBadCardPosition() async throws(Failure) {
        guard !workflow.isCancelled else { throw .cancelled }
        guard workflow.session.level >= .three else { return }
        try await workflow.ask(PausePrompt(cause: "BadCardPosition"))
    }
}

/// PAUSE asks the user to place the card better. The client answers CONTINUE.
struct PausePrompt: AcknowledgedPrompt {
    static let acknowledgement = "CONTINUE"
    let cause: String

    var name: StaticString { "PAUSE" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        WrittenMessage(name) { $0.member("cause", cause) }
    }
}

/// Returns the current time. Tests pass their own function, so that they need not wait.
package typealias Now = @Sendable () -> ContinuousClock.Instant

/// Counts losses of a card in steps that need a steady field. A badly placed card is lost again and again.
struct CardPosition {
    /// The number of losses, or the time since the second one, after which the user is informed.
    static let maximumLosses = 10
    static let maximumTime = Duration.seconds(4)

    private var losses = 0
    private var second: ContinuousClock.Instant?
    private let now: Now

    init(now: @escaping Now) {
        self.now = now
    }

    private(set) var isBad = false

    /// Resets the count after a step has succeeded or the user has placed the card again.
    mutating func reset() { self = CardPosition(now: now) }

    mutating func lost() {
        losses += 1
        if losses == 2 { second = now() }
        isBad = losses >= Self.maximumLosses || second.map { now() - $0 > Self.maximumTime } ?? false
    }
}
