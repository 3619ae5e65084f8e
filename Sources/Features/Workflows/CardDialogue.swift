// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EID
import EService
import ISO7816
import Secrets

/// What every workflow does with a card: finds it, opens it with the passwords it needs, and when it is lost begins again
/// with the next. The passwords are in CardDialogue+Passwords.swift.
///
/// What is typed is bound to the stay of one card in one reader and used once: after any loss of the card the client is
/// asked again. The order of things is that of docs/architecture.md, Workflows.
@Loop final class CardDialogue {
    let client: any WorkflowClient
    private let selection: CardSelection
    private var position: CardPosition

    init(_ client: any WorkflowClient, _ selection: CardSelection, now: @escaping Now) {
        (self.client, self.selection) = (client, selection)
        position = CardPosition(now: now)
    }

    /// Why the dialogue with one card does not go on.
    enum Stop: Error {
        /// The client has to be asked again, about this card or another one.
        case cardLost
        case failed(FailureCode)
    }

    /// Runs `body` with one card after another until it is not stopped by a loss. When this returns the reader is free
    /// and no channel is left on the card.
    func run(_ body: @Loop (HeldCard) async throws(Stop) -> Void) async throws(FailureCode) {
        while try await attempt(body) == .cardLost {}
    }

    private enum Attempt { case done, cardLost }

    /// One card, from finding it to the end of `body` or to its loss.
    private func attempt(_ body: @Loop (HeldCard) async throws(Stop) -> Void) async throws(FailureCode) -> Attempt {
        let card: HeldCard
        do throws(Interruption) {
            card = try await selection.acquire()
        } catch {
            throw .userCancelled
        }
        var result = Result<Attempt, FailureCode>.success(.done)
        do throws(Stop) {
            try await body(card)
        } catch {
            switch error {
            case .cardLost: result = .success(.cardLost)
            case .failed(let reason): result = .failure(reason)
            }
        }
        let isOver = if case .success(.cardLost) = result { false } else { true }
        await card.release(shelve: isOver)
        if !isOver, position.isBad {
            do throws(Interruption) {
                try await client.pauseForBadCardPosition()
            } catch {
                throw .userCancelled
            }
            position.reset()
        }
        return try result.get()
    }

    // MARK: The position of the card

    func cardLies(well: Bool) {
        if well { position.reset() } else { position.lost() }
    }
}
