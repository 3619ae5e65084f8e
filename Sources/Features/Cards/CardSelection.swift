// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Server

/// Waits for a usable card and takes it.
///
/// A card or reader that is there but cannot be used is explained to the client, once each.
@Loop final class CardSelection<Requirements: CardRequirements> {
    private let registry: ReaderRegistry
    private let workflow: Workflow
    /// The only reader to look at, when the client has named one.
    private let readerName: String?
    private let requirements: Requirements
    /// What was explained already, per insertion.
    private var explained: Set<Explanation> = []
    /// Insertions that are over for us although the reader has not noticed yet.
    private var passedOver: Set<Insertion> = []
    /// The client has been told that a card is awaited.
    private var isAnnounced = false

    private struct Explanation: Hashable {
        let obstacle: CardObstacle
        let reader: String
        let insertion: Insertion?
    }

    init(_ registry: ReaderRegistry, _ workflow: Workflow, readerName: String?, _ requirements: Requirements) {
        (self.registry, self.workflow, self.readerName) = (registry, workflow, readerName)
        self.requirements = requirements
    }

    private var owner: ObjectIdentifier { ObjectIdentifier(workflow) }

    /// The first usable card by reader name. Waits without a time limit.
    func acquire() async throws(Interruption) -> (lease: CardLease, card: Requirements.Card) {
        isAnnounced = false
        var losses = unseenLosses
        while true {
            guard !Task.isCancelled else { throw .cancelled }
            if let found = await takeFirst() {
                // Opening the card may have shown that it is of no use.
                if obstacle(of: found.lease.reader) == nil { return found }
                await found.lease.release(shelve: false)
                continue
            }
            guard !Task.isCancelled else { throw .cancelled }
            if unseenLosses != losses {
                // Whoever put that card in believes that it is there, and has to put it in again.
                losses = unseenLosses
                isAnnounced = false
            }
            waitForCard()
            await registry.nextChange()
        }
    }

    private func waitForCard() {
        guard !workflow.isCancelled else { return }
        workflow.awaitedEvent = InsertCardMessage.eventName
        let obstacles = newObstacles()
        if !isAnnounced, obstacles.isEmpty { workflow.session.push(InsertCardMessage()) }
        for (obstacle, reader) in obstacles {
            workflow.session.push(InsertCardMessage(error: obstacle.text(reader), reader: reader))
        }
        isAnnounced = true
    }

    private func takeFirst() async -> (lease: CardLease, card: Requirements.Card)? {
        for reader in candidates {
            guard obstacle(of: reader) == nil, let insertion = reader.insertion,
                case .known(let profile) = reader.card, let profile = profile as? Requirements.Profile,
                !passedOver.contains(insertion), registry.claim(reader, for: owner)
            else { continue }
            workflow.awaitedEvent = nil
            // After a loss somebody has to put the card in again.
            isAnnounced = false
            if let found = await open(reader, insertion, profile) { return found }
            registry.release(reader)
        }
        return nil
    }

    /// Tries twice to reach a card that is known. Then the card is left alone until it is put in again.
    private func open(
        _ reader: Reader,
        _ insertion: Insertion,
        _ profile: Requirements.Profile
    ) async -> (lease: CardLease, card: Requirements.Card)? {
        for attempt in 1...2 {
            do throws(CardError) {
                let lease = try await CardLease(reader, insertion, registry)
                do throws(CardError) {
                    return (lease, try await requirements.open(lease, profile))
                } catch {
                    await lease.connection.disconnect(reset: true)
                    throw error
                }
            } catch {
                registry.log("card in '\(reader.name)' could not be opened, try \(attempt): \(error)")
                guard let obstacle = CardObstacle(error) else {
                    passedOver.insert(insertion)
                    return nil
                }
                if attempt == 2 || obstacle.isFinal {
                    registry.markUnusable(reader, insertion, obstacle)
                    return nil
                }
            }
        }
        return nil
    }

    /// Cards that came and went before they were recognised.
    private var unseenLosses: Int {
        if let readerName { return registry.unseenLosses[readerName] ?? 0 }
        return registry.unseenLosses.values.reduce(0, +)
    }

    // MARK: Obstacles

    private var candidates: [Reader] {
        guard let readerName else { return registry.readers }
        return registry[readerName].map { [$0] } ?? []
    }

    private func obstacle(of reader: Reader) -> CardObstacle? {
        switch reader.card {
        case .none, .recognizing: return nil
        case .unusable(let obstacle): return obstacle
        case .unknown: return requirements.wrongKind
        case .known(let profile):
            guard let profile = profile as? Requirements.Profile else { return requirements.wrongKind }
            if reader.owner != nil, reader.owner != owner { return .busy }
            return requirements.obstacle(of: profile, in: reader.description)
        }
    }

    private func newObstacles() -> [(CardObstacle, reader: String)] {
        var found: [(CardObstacle, reader: String)] = []
        if let readerName, registry[readerName] == nil {
            let explanation = Explanation(obstacle: .unknownReader, reader: readerName, insertion: nil)
            if explained.insert(explanation).inserted { found.append((.unknownReader, readerName)) }
        }
        for reader in candidates {
            guard let obstacle = obstacle(of: reader) else { continue }
            let explanation = Explanation(obstacle: obstacle, reader: reader.name, insertion: reader.insertion)
            if explained.insert(explanation).inserted { found.append((obstacle, reader.name)) }
        }
        return found
    }
}
