// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Server
package import Text
import Wire

/// The common part of all card workflows: finds a card, uses the card, and begins again when the card is lost.
///
/// An answer of the client is bound to one insertion and used once: after any loss of the card the client is asked
/// again. docs/architecture.md, How one PIN moves.
@Loop package final class CardDialogue<Requirements: CardRequirements> {
    package let workflow: Workflow
    private let selection: CardSelection<Requirements>
    private var position: CardPosition

    package init(
        _ registry: ReaderRegistry,
        _ workflow: Workflow,
        readerName: String?,
        _ requirements: Requirements,
        now: @escaping Now
    ) {
        self.workflow = workflow
        selection = CardSelection(registry, workflow, readerName: readerName, requirements)
        position = CardPosition(now: now)
    }

    /// Runs `body` with one card after another until `body` ends without the loss of its card: any failure but
    /// `.cardLost` is the end. Then the reader is free.
    package func run(_ body: @Loop (Requirements.Card) async throws(Failure) -> Void) async throws(Failure) {
        while true {
            do throws(Failure) {
                return try await runWithOneCard(body)
            } catch {
                guard error.code == .cardLost else { throw error }
            }
        }
    }

    private func runWithOneCard(
        _ body: @Loop (Requirements.Card) async throws(Failure) -> Void
    ) async throws(Failure) {
        let (lease, card) = try await selection.acquire()
        do throws(Failure) {
            try await body(card)
        } catch {
            let isLost = error.code == .cardLost
            await lease.release(removingVirtualCard: !isLost)
            if isLost, position.isBad {
                try await pauseForBadCardPosition()
                position.reset()
            }
            throw error
        }
        await lease.release(removingVirtualCard: true)
    }

    // MARK: The position of the card

    /// Counts losses of the card in steps that need a steady field. PAUSE is sent after too many of them.
    package func cardLies(well: Bool) {
        if well { position.reset() } else { position.lost() }
    }

    private func pauseForBadCardPosition() async throws(Failure) {
        guard !workflow.isCancelled else { throw .cancelled }
        guard workflow.session.level >= .three else { return }
        try await workflow.ask(PausePrompt(cause: "BadCardPosition"))
    }
}
