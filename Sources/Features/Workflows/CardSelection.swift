// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EID
import ISO7816
import Readers

/// Waits for a usable eID card and takes it: the states SelectReader and ConnectCard of every workflow.
///
/// Nothing is waited for in silence: a card or reader that is there but cannot be used is explained, once each.
@Loop final class CardSelection {
    private let registry: ReaderRegistry
    private let client: any WorkflowClient
    /// The only reader to look at, when the client has named one.
    private let readerName: String?
    private let requirements: CardRequirements
    /// What was explained already, per stay of a card.
    private var explained: Set<Explanation> = []
    /// Stays that ended for us although the reader has not noticed yet.
    private var passedOver: Set<Insertion> = []
    /// The client knows that a card is waited for.
    private var isAnnounced = false

    private struct Explanation: Hashable {
        let obstacle: CardObstacle
        let reader: String
        let insertion: Insertion?
    }

    init(
        _ registry: ReaderRegistry,
        _ client: any WorkflowClient,
        readerName: String?,
        _ requirements: CardRequirements
    ) {
        (self.registry, self.client, self.readerName) = (registry, client, readerName)
        self.requirements = requirements
    }

    private var owner: ObjectIdentifier { ObjectIdentifier(client) }

    /// The first usable card by reader name; waits as long as it takes.
    func acquire() async throws(Interruption) -> HeldCard {
        isAnnounced = false
        var losses = unseenLosses
        while true {
            guard !Task.isCancelled else { throw .cancelled }
            if let held = await takeFirst() {
                if held.status.deactivated, requirements.needsPIN {
                    await held.release(shelve: false)
                    continue
                }
                return held
            }
            guard !Task.isCancelled else { throw .cancelled }
            if unseenLosses != losses {
                // Whoever put that card in believes that it is there.
                losses = unseenLosses
                isAnnounced = false
            }
            client.waitForCard(announce: !isAnnounced, obstacles: newObstacles())
            isAnnounced = true
            await registry.nextChange()
        }
    }

    private func takeFirst() async -> HeldCard? {
        for reader in candidates {
            guard obstacle(of: reader) == nil, let insertion = reader.insertion,
                case .eid(let profile, _) = reader.card,
                !passedOver.contains(insertion), registry.claim(reader, for: owner)
            else { continue }
            client.cardFound()
            // If it is lost again, somebody has to put it in again.
            isAnnounced = false
            if let held = await open(reader, insertion, profile) { return held }
            registry.release(reader)
        }
        return nil
    }

    /// Tries twice to reach a card that is known; then it is left alone until it is put in again.
    private func open(_ reader: Reader, _ insertion: Insertion, _ profile: EIDProfile) async -> HeldCard? {
        for attempt in 1...2 {
            do throws(EIDError) {
                return try await HeldCard.open(reader, insertion, profile, registry)
            } catch {
                registry.log("card in '\(reader.name)' could not be opened, try \(attempt): \(error)")
                var obstacle = CardObstacle.mute
                if case .card(let cardError) = error {
                    guard let known = CardObstacle(cardError) else {
                        passedOver.insert(insertion)
                        return nil
                    }
                    obstacle = known
                }
                if attempt == 2 || obstacle == .exclusive || obstacle == .accessDenied {
                    registry.markUnusable(reader, insertion, obstacle)
                    return nil
                }
            }
        }
        return nil
    }

    /// Cards that came and went before it was known what they are.
    private var unseenLosses: Int {
        if let readerName { return registry.unseenLosses[readerName] ?? 0 }
        return registry.unseenLosses.values.reduce(0, +)
    }

    // MARK: Judgement

    private var candidates: [Reader] {
        guard let readerName else { return registry.readers }
        return registry[readerName].map { [$0] } ?? []
    }

    private func obstacle(of reader: Reader) -> CardObstacle? {
        switch reader.card {
        case .none, .identifying:
            return nil
        case .unusable(let obstacle):
            return obstacle
        case .eid(let profile, let inoperative):
            if reader.owner != nil, reader.owner != owner { return .busy }
            if !requirements.accepts(profile) { return .unacceptedType }
            if requirements.needsPIN {
                if profile.status.deactivated { return .deactivated }
                if inoperative { return .inoperative }
            }
            if requirements.needsExtendedLength, !reader.description.hasExtendedLength { return .noExtendedLength }
            return nil
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
