// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ISO7816
import Readers
import Server

/// Waits for a usable card and lends it to the workflow.
///
/// For each card or reader that cannot be used, the client gets one explanation.
@Loop final class CardSelection<Requirements: CardRequirements> {
    private let registry: ReaderRegistry
    private let workflow: Workflow
    /// The only reader to use, if the client has named one.
    private let readerName: String?
    private let requirements: Requirements
    /// The obstacles that were explained already, for each insertion.
    private var explained: Set<Explanation> = []
    /// Insertions that this workflow treats as ended before the reader reports the removal.
    private var passedOver: Set<Insertion> = []
    /// Whether the client was asked to insert a card.
    private var isAnnounced = false
    /// The place among the workflows that wait. It stays the same when the card is lost.
    private let ticket: ReaderRegistry.Ticket
    /// Whether a card is being opened, so that others may take the cards in other readers.
    private var isOpening = false

    private struct Explanation: Hashable {
        let obstacle: CardObstacle
        let reader: String
        let insertion: Insertion?
    }

    init(_ registry: ReaderRegistry, _ workflow: Workflow, readerName: String?, _ requirements: Requirements) {
        (self.registry, self.workflow, self.readerName) = (registry, workflow, readerName)
        self.requirements = requirements
        ticket = registry.makeTicket()
    }

    private var owner: ObjectIdentifier { ObjectIdentifier(workflow) }

    /// Returns the first usable card by reader name. Waits without a time limit. A card that several workflows could
    /// take goes to the one that asked first; a card of SET_CARD goes to the workflow of its client.
    func acquire() async throws(Interruption) -> (lease: CardLease, card: Requirements.Card) {
        registry.queue(ticket) { [weak self] reader in self?.canTake(reader) ?? false }
        defer { registry.leaveQueue(ticket) }
        isAnnounced = false
        var losses = unseenLosses
        while true {
            guard !Task.isCancelled else { throw .cancelled }
            if let found = await takeFirst() {
                // The first step of the use may have shown that the card cannot be used.
                if obstacle(of: found.lease.reader) == nil { return found }
                await found.lease.release(removingVirtualCard: false)
                continue
            }
            guard !Task.isCancelled else { throw .cancelled }
            if unseenLosses != losses {
                // The user believes that this card is in the reader, and has to insert it again.
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
            guard canTake(reader), let insertion = reader.insertion,
                case .known(let profile) = reader.card, let profile = profile as? Requirements.Profile,
                registry.isFirst(ticket, for: reader)
            else { continue }
            isOpening = true
            defer { isOpening = false }
            guard registry.claim(reader, for: owner) else { continue }
            workflow.awaitedEvent = nil
            // After a loss the user has to insert the card again.
            isAnnounced = false
            if let found = await open(reader, insertion, profile) { return found }
            registry.release(reader)
        }
        return nil
    }

    /// Whether the card in a reader is usable, and not reserved for another workflow.
    private func canTake(_ reader: Reader) -> Bool {
        guard !isOpening, !workflow.isCancelled, readerName == nil || readerName == reader.name,
            obstacle(of: reader) == nil, let insertion = reader.insertion, case .known = reader.card
        else { return false }
        return !passedOver.contains(insertion) && (reader.supplier == nil || reader.supplier == owner)
    }

    /// Makes two attempts to open a known card. After them the card is not used until its next insertion.
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
                registry.log(
                    CardObstacle(error) == nil ? .info : .notice,
                    "card in '\(reader.name)' could not be opened, attempt \(attempt): \(error)"
                )
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

    /// The number of cards that were removed before they were recognised.
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
        let failed = registry.failedReaders.filter { readerName == nil || $0.reader == readerName }
        for (reader, advice) in failed {
            let explanation = Explanation(obstacle: .failed(advice), reader: reader, insertion: nil)
            if explained.insert(explanation).inserted { found.append((.failed(advice), reader)) }
        }
        if let readerName, registry[readerName] == nil, failed.isEmpty {
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
