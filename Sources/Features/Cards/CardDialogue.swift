// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Server
import Wire

/// The common part of all card workflows: finds a card, uses the card, and begins again when the card is lost.
///
/// An answer of the client is bound to one insertion and used once: after any loss of the card the client is asked
/// again. docs/architecture.md, How one PIN moves.
@Loop package final class CardDialogue<Requirements: CardRequirements, Reason: Sendable> {
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

    package enum Outcome {
        case done
        case cancelled
        /// A prompt got no answer in time.
        case timedOut
        case failed(Reason)
    }

    /// Runs `body` with one card after another until `body` ends without the loss of its card. At the end the reader is
    /// free.
    package func run(_ body: @Loop (Requirements.Card) async throws(CardStop<Reason>) -> Void) async -> Outcome {
        while true {
            do throws(CardStop<Reason>) {
                try await runWithOneCard(body)
                return .done
            } catch {
                switch error {
                case .cardLost: continue
                case .cancelled: return .cancelled
                case .timedOut: return .timedOut
                case .failed(let reason): return .failed(reason)
                }
            }
        }
    }

    private func runWithOneCard(
        _ body: @Loop (Requirements.Card) async throws(CardStop<Reason>) -> Void
    ) async throws(CardStop<Reason>) {
        let (lease, card): (CardLease, Requirements.Card)
        do throws(Interruption) {
            (lease, card) = try await selection.acquire()
        } catch {
            throw .cancelled
        }
        var stop: CardStop<Reason>?
        do throws(CardStop<Reason>) {
            try await body(card)
        } catch {
            stop = error
        }
        guard let stop else { return await lease.release(removingVirtualCard: true) }
        guard case .cardLost = stop else {
            await lease.release(removingVirtualCard: true)
            throw stop
        }
        await lease.release(removingVirtualCard: false)
        if position.isBad {
            do throws(Interruption) {
                try await pauseForBadCardPosition()
            } catch {
                throw CardStop(error)
            }
            position.reset()
        }
        throw stop
    }

    // MARK: The position of the card

    /// Counts losses of the card in steps that need a steady field. PAUSE is sent after too many of them.
    package func cardLies(well: Bool) {
        if well { position.reset() } else { position.lost() }
    }

    private func pauseForBadCardPosition() async throws(Interruption) {
        guard !workflow.isCancelled else { throw .cancelled }
        guard workflow.session.level >= .three else { return }
        try await workflow.ask(PausePrompt(cause: "BadCardPosition"))
    }
}

/// The reason why the dialogue with one card ends.
package enum CardStop<Reason: Sendable>: Error {
    /// The client has to be asked again, about this card or another one.
    case cardLost
    case cancelled
    /// A prompt got no answer in time.
    case timedOut
    case failed(Reason)

    /// The stop after a prompt without an answer.
    package init(_ interruption: Interruption) {
        self =
            switch interruption {
            case .cancelled: .cancelled
            case .outdated: .cardLost
            case .timedOut: .timedOut
            }
    }
}
