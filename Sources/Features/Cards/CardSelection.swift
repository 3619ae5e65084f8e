// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ISO7816
import Readers
import Server
import Text

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
    private let place: CardQueue.Place
    private var attempt: Attempt?

    /// The opening of one card. Meanwhile the workflow watches the other readers.
    @Loop private final class Attempt {
        let reader: Reader
        let insertion: Insertion
        var task: Task<Void, Never>?
        /// nil while it runs.
        var outcome: Outcome?

        init(_ reader: Reader, _ insertion: Insertion) { (self.reader, self.insertion) = (reader, insertion) }
    }

    private enum Outcome {
        case opened(CardLease, Requirements.Card)
        case stopped(CardVerdict)
    }

    private struct Explanation: Hashable {
        let obstacle: CardObstacle
        let reader: String
        let insertion: Insertion?
    }

    init(_ registry: ReaderRegistry, _ workflow: Workflow, readerName: String?, _ requirements: Requirements) {
        self.registry = registry
        self.workflow = workflow
        self.readerName = readerName
        self.requirements = requirements
        place = registry.makePlace(for: workflow)
    }

    private var owner: ObjectIdentifier { ObjectIdentifier(workflow) }

    /// Returns the first usable card by reader name. Waits without a time limit. A card that several workflows could
    /// take goes to one of them by `CardQueue`; a card of SET_CARD goes to the workflow of its client.
    func acquire() async throws(Failure) -> (lease: CardLease, card: Requirements.Card) {
        let waiter = CardQueue.Waiter(place: place) { [weak self] in
            self?.canTake($0) ?? false
        } wants: { [weak self] in
            self?.wants($0) ?? false
        }
        registry.enterQueue(waiter)
        defer { registry.leaveQueue(place) }
        isAnnounced = false
        var losses = unseenLosses
        while true {
            if let ended = attempt, let outcome = ended.outcome {
                attempt = nil
                if let found = await result(of: ended, outcome) { return found }
                continue
            }
            guard !Task.isCancelled else {
                await giveUp()
                throw .cancelled
            }
            if isOpening {
                await registry.nextChange()
                continue
            }
            if let (reader, insertion, profile) = firstCard {
                // An attempt that waits for another program is cancelled in favour of a card that is free.
                if attempt != nil { await giveUp() } else { begin(reader, insertion, profile) }
                continue
            }
            if unseenLosses != losses {
                // To the user this card is still in the reader. It has to be inserted again.
                losses = unseenLosses
                isAnnounced = false
            }
            waitForCard()
            await registry.nextChange()
        }
    }

    private func waitForCard() {
        guard !workflow.isCancelled else { return }
        // The client may insert a card into a virtual reader that is no longer busy.
        let ended = explained.filter { $0.obstacle == .busy && registry[$0.reader]?.isFree(for: owner) == true }
        if !ended.isEmpty {
            explained.subtract(ended)
            isAnnounced = false
        }
        workflow.awaitedEvent = InsertCardMessage.eventName
        let obstacles = newObstacles()
        if !isAnnounced, obstacles.isEmpty {
            workflow.session.push(InsertCardMessage(error: requirements.reminder))
        }
        for (obstacle, reader) in obstacles {
            workflow.session.push(InsertCardMessage(error: obstacle.text(reader), reader: reader))
        }
        isAnnounced = true
    }

    // MARK: Attempts

    /// Whether a card is being opened. Others may take the cards in other readers then, unless another program holds
    /// this card.
    private var isOpening: Bool { attempt.map { !$0.reader.isHindered } ?? false }

    private var firstCard: (Reader, Insertion, Requirements.Profile)? {
        for reader in candidates where canTake(reader) && registry.isFirst(place, for: reader) {
            guard let insertion = reader.insertion, let profile = profile(in: reader) else { continue }
            return (reader, insertion, profile)
        }
        return nil
    }

    /// Whether the card in a reader is usable now, and not reserved for another workflow.
    private func canTake(_ reader: Reader) -> Bool {
        guard !isOpening, wants(reader), !reader.isHindered, !reader.isRead, !reader.isLent || reader.owner == owner,
            let insertion = reader.insertion
        else { return false }
        return !passedOver.contains(insertion) && (reader.supplier == nil || reader.supplier == owner)
    }

    /// Whether the workflow could use the card in a reader, which somebody else may hold.
    private func wants(_ reader: Reader) -> Bool {
        !workflow.isCancelled && (readerName == nil || readerName == reader.name) && profile(in: reader) != nil
            && cardObstacle(of: reader) == nil
    }

    /// What the workflow needs to know of the card in a reader; nil: it cannot use the card.
    private func profile(in reader: Reader) -> Requirements.Profile? {
        switch reader.card {
        case .none, .recognizing, .unusable: nil
        case .unknown: requirements.profileOfUnknown(in: reader)
        case .known(let known): requirements.profile(known)
        }
    }

    private func begin(_ reader: Reader, _ insertion: Insertion, _ profile: Requirements.Profile) {
        guard registry.claim(reader, for: owner, at: place) else { return }
        workflow.awaitedEvent = nil
        // After a loss the user has to insert the card again.
        isAnnounced = false
        let new = Attempt(reader, insertion)
        attempt = new
        new.task = Task.immediate { @Loop in
            new.outcome = await self.open(reader, insertion, profile)
            self.registry.wakeWaiters()
        }
    }

    /// Ends an attempt that is under way. The card is then as usable as before.
    private func giveUp() async {
        guard let attempt else { return }
        attempt.task?.cancel()
        await attempt.task?.value
        self.attempt = nil
        if case .opened(let lease, _) = attempt.outcome {
            await lease.release(removingVirtualCard: Task.isCancelled)
        } else {
            registry.release(attempt.reader)
        }
    }

    /// The result of an attempt that has ended by itself.
    private func result(of attempt: Attempt, _ outcome: Outcome) async -> (lease: CardLease, card: Requirements.Card)? {
        let (reader, insertion) = (attempt.reader, attempt.insertion)
        switch outcome {
        case .opened(let lease, let card):
            workflow.reader = reader.name
            workflow.awaitedEvent = nil
            explained = explained.filter { $0.insertion != insertion }
            // The first step of the use may have shown that the card cannot be used.
            if obstacle(of: reader) == nil {
                place.uses += 1
                workflow.showProgress { [weak lease] in lease?.connection.show(progress: $0) }
                return (lease, card)
            }
            await lease.release(removingVirtualCard: false)
            return nil
        case .stopped(.cardFailed(let failure)): registry.markUnusable(reader, insertion, failure)
        case .stopped(.hindered(let obstacle)): registry.hinder(reader, insertion, obstacle)
        case .stopped(.cardLeft): passedOver.insert(insertion)
        // A connection that was closed before the end of the workflow is opened again.
        case .stopped(.ended): if !Task.isCancelled { registry.hinder(reader, insertion, .exclusive) }
        }
        registry.release(reader)
        return nil
    }

    /// Makes two attempts to open a known card.
    private func open(_ reader: Reader, _ insertion: Insertion, _ profile: Requirements.Profile) async -> Outcome {
        var verdict = CardVerdict.ended
        for number in 1...2 where !Task.isCancelled {
            do throws(CardError) {
                let lease = try await CardLease(reader, insertion, registry)
                do throws(CardError) {
                    return .opened(lease, try await requirements.open(lease, profile))
                } catch {
                    await lease.connection.disconnect(reset: true)
                    throw error
                }
            } catch {
                verdict = CardVerdict(error)
                let isFault = if case .cardFailed = verdict { true } else { false }
                workflow.session.log(
                    isFault ? .notice : .info,
                    "card in '\(reader.name)' could not be opened, attempt \(number): \(error)",
                    reader: reader.name
                )
                guard isFault || error == .reset else { return .stopped(verdict) }
            }
        }
        return .stopped(verdict)
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

    /// What keeps this workflow from using the card now, apart from other programs.
    private func obstacle(of reader: Reader) -> CardObstacle? {
        if reader.isLent, reader.owner != owner, profile(in: reader) != nil { return reader.useObstacle }
        return cardObstacle(of: reader)
    }

    /// Why this workflow cannot use the card, whoever holds it.
    private func cardObstacle(of reader: Reader) -> CardObstacle? {
        switch reader.card {
        case .none, .recognizing: return nil
        case .unusable(let failure): return failure.obstacle
        case .unknown, .known:
            guard let profile = profile(in: reader) else { return requirements.wrongKind }
            if let insertion = reader.insertion, let obstacle = requirements.obstacle(of: insertion, in: reader) {
                return obstacle
            }
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
            guard let obstacle = obstacle(of: reader) ?? (reader.isHindered ? reader.hindrance?.obstacle : nil)
            else { continue }
            let explanation = Explanation(obstacle: obstacle, reader: reader.name, insertion: reader.insertion)
            if explained.insert(explanation).inserted { found.append((obstacle, reader.name)) }
        }
        return found
    }
}
