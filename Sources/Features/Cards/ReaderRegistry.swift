// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
import ISO7816
package import Readers
import Server
package import Text

/// Merges the readers of all backends, recognises each card once per insertion, and lends readers to workflows.
@Loop package final class ReaderRegistry {
    /// Called after each change that clients can see, with the name of the reader.
    var observer: @Loop (_ reader: String) -> Void = { _ in }
    /// Writes a line of the log; `reader` is the one that the line is about.
    package var log: @Loop (Log.Level, _ text: String, _ reader: String?) -> Void = { _, _, _ in }
    /// Reads cards after their recognition.
    package weak var reading: (any CardReading)?
    /// The workflows that wait for a phone. While there are any, what lies on a reader is shown to them first.
    package var phoneWaiters = 0
    package var isPhoneAwaited: Bool { phoneWaiters > 0 }
    /// The kinds of cards, in the order of recognition.
    package var kinds: [any CardKind] = [] {
        didSet { kinds = kinds.filter { !$0.isForOthers } + kinds.filter(\.isForOthers) }
    }

    /// Whether clients watch readers or use cards.
    var isWatched = false {
        didSet {
            guard isWatched != oldValue else { return }
            for backend in backends { backend.watch(isWatched) }
        }
    }

    private var readersByName: [String: Reader] = [:]
    private var backends: [any ReaderBackend] = []
    /// For each reader, the number of cards that were removed before they were recognised.
    private(set) var unseenLosses: [String: Int] = [:]
    /// The cards that were recognised, by kind.
    private(set) var insertions = LabelledCounter(
        "badged_card_insertions_total",
        "Cards that were put on readers; unknown: of no known kind.",
        by: "kind"
    )
    private var consumers: [Task<Void, Never>] = []
    private var health: [String: [HealthCheck]] = [:]
    private var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var nextWaiter: UInt64 = 0
    /// Those who wait for a card.
    private(set) var queue = CardQueue()
    /// Repeats attempts that something outside of the card has hindered, while a workflow waits.
    private lazy var retryAlarm = Loop.Alarm { [weak self] in self?.retry() }
    /// Milliseconds.
    private static let retryTime: Int64 = 1000

    package nonisolated init() {}

    /// The readers, sorted by name.
    package var readers: [Reader] { readersByName.values.sorted { $0.name < $1.name } }

    package subscript(_ name: String) -> Reader? { readersByName[name] }

    package var drivers: [String] { backends.map(\.name) }

    /// Adds a backend, and handles its events from now on.
    package func add(_ backend: any ReaderBackend) {
        backends.append(backend)
        if isWatched { backend.watch(true) }
        let events = backend.events
        consumers.append(
            Task { @Loop [weak self] in
                for await event in events { self?.handle(event, from: backend) }
            }
        )
    }

    /// Returns when at least this number of readers is known.
    package func waitForReaders(_ count: Int) async {
        while readersByName.count < count { await nextChange() }
    }

    /// Makes the backends look for readers that appear without an event.
    package func rescan() {
        for backend in backends { backend.rescan() }
    }

    /// Waits until the cards in use are reset, releases the readers, and ends all backends.
    package func stop() async {
        while readersByName.values.contains(where: { $0.owner != nil }) { await nextChange() }
        for backend in backends { await backend.close() }
        for consumer in consumers { consumer.cancel() }
        consumers = []
    }

    // MARK: Events

    private func handle(_ event: ReaderEvent, from backend: any ReaderBackend) {
        switch event {
        case .added(let description):
            guard readersByName[description.name] == nil else {
                log(
                    .warning,
                    "reader '\(description.name)' of \(backend.name) has the name of another reader and is ignored",
                    description.name
                )
                return
            }
            readersByName[description.name] = Reader(description, backend)
            log(.notice, "reader '\(description.name)' (\(backend.name)) is there", description.name)
            changed(description.name)
        case .changed(let description):
            guard let reader = reader(description.name, of: backend) else { return }
            reader.description = description
            // The program that held the reader may have ended.
            if case .recognizing = reader.card, reader.hindrance != nil {
                recognizeAgain(reader)
            } else {
                reader.hindrance = nil
            }
            changed(description.name)
        case .held(let insertion):
            guard let reader = reader(insertion.reader, of: backend) else { return }
            hinder(reader, insertion, .exclusive, isWatched: true)
        case .removed(let name):
            guard let reader = reader(name, of: backend) else { return }
            cardLeft(reader)
            readersByName[name] = nil
            log(.notice, "reader '\(name)' (\(backend.name)) is gone", name)
            changed(name)
        case .inserted(let insertion, let answerToReset):
            guard let reader = reader(insertion.reader, of: backend) else { return }
            recognize(reader, insertion, answerToReset)
        case .withdrawn(let insertion):
            guard let reader = reader(insertion.reader, of: backend), reader.insertion == insertion else { return }
            let wasShown = reader.showsCard
            cardLeft(reader)
            insertNextSupply(into: reader)
            if wasShown {
                changed(reader.name)
            } else {
                unseenLosses[reader.name, default: 0] += 1
                wakeWaiters()
            }
        case .health(let checks):
            logChanges(from: health[backend.name] ?? [], to: checks)
            health[backend.name] = checks
            wakeWaiters()
        }
    }

    private func reader(_ name: String, of backend: any ReaderBackend) -> Reader? {
        guard let reader = readersByName[name], reader.backend.name == backend.name else { return nil }
        return reader
    }

    private func cardLeft(_ reader: Reader) {
        reader.recognition?.cancel()
        reader.insertion = nil
        reader.ndef = nil
        reader.card = .none
        reader.supplier = nil
        reader.recognition = nil
        reader.hindrance = nil
    }

    // MARK: Recognition

    private func recognize(_ reader: Reader, _ insertion: Insertion, _ answerToReset: [UInt8]) {
        reader.recognition?.cancel()
        reader.recognition = nil
        reader.insertion = insertion
        reader.ndef = nil
        reader.answerToReset = answerToReset
        reader.card = .recognizing
        reader.hindrance = nil
        recognizeAgain(reader)
    }

    /// Recognises the card in a reader, unless this is under way.
    private func recognizeAgain(_ reader: Reader) {
        guard let insertion = reader.insertion, reader.recognition == nil else { return }
        reader.recognition = Task { @Loop [weak self] in
            guard let recognition = await self?.recognizedCard(reader, insertion) else { return }
            guard let self, !Task.isCancelled, reader.insertion == insertion else { return }
            reader.recognition = nil
            switch recognition {
            case .hindered(let obstacle):
                hinder(reader, insertion, obstacle)
            case .card(let card, let connection):
                reader.card = card
                reader.hindrance = nil
                if let kind = reader.countedKind { insertions.add(kind) }
                let lease = connection.map { CardLease(reader, insertion, $0, self) }
                if lease != nil { claimForReading(reader) }
                changed(reader.name)
                reading?.cardRecognized(in: reader, lease)
            }
        }
    }

    private enum Recognition {
        /// A card, and the connection to it if the card is to be read at once.
        case card(Reader.Card, (any CardConnection)?)
        /// The card cannot be recognised now.
        case hindered(CardObstacle)
    }

    /// Makes two attempts, because a card that is still moving often misses the first command.
    private func recognizedCard(_ reader: Reader, _ insertion: Insertion) async -> Recognition {
        var card = Reader.Card.none
        for attempt in 1...2 {
            do throws(CardError) {
                return try await recognize(reader, insertion)
            } catch {
                switch CardVerdict(error) {
                case .cardFailed(let failure):
                    log(
                        .notice,
                        "card in '\(insertion.reader)' could not be recognised, attempt \(attempt): \(error)",
                        insertion.reader
                    )
                    card = .unusable(failure)
                case .hindered(let obstacle):
                    if attempt == 2 || error != .reset { return .hindered(obstacle) }
                case .cardLeft:
                    log(.info, "card in '\(insertion.reader)' could not be recognised: \(error)", insertion.reader)
                    return .card(card, nil)
                case .ended:
                    // A recognition that is cancelled has no result; any other one is repeated.
                    return .hindered(.exclusive)
                }
            }
        }
        return .card(card, nil)
    }

    private func recognize(_ reader: Reader, _ insertion: Insertion) async throws(CardError) -> Recognition {
        let connection = try await reader.backend.connect(insertion)
        // A spoiled answer must not make another card of the right one.
        let channel = RepeatingChannel(connection)
        var profile: (any CardProfile)?
        do throws(CardError) {
            let claiming = kinds.filter { $0.claims(answerToReset: reader.answerToReset) }
            for kind in claiming.isEmpty ? kinds : claiming where profile == nil {
                profile = try await kind.recognize(channel, answerToReset: reader.answerToReset)
            }
        } catch {
            await connection.disconnect(reset: true)
            throw error
        }
        // A new connection costs at least the time of one command.
        if let profile, reader.owner == nil, reading?.wants(profile) == true {
            return .card(.known(profile), connection)
        }
        await connection.disconnect(reset: false)
        return .card(profile.map { .known($0) } ?? .unknown, nil)
    }

    // MARK: The order of those who wait for a card

    /// Makes a place for a workflow; nil: for another use.
    func makePlace(for workflow: Workflow? = nil) -> CardQueue.Place { queue.makePlace(for: workflow) }

    /// Adds somebody to those who wait.
    func enterQueue(_ waiter: CardQueue.Waiter) {
        queue.add(waiter)
        retry()
    }

    /// Removes somebody from those who wait, so that the next one may take a card.
    func leaveQueue(_ place: CardQueue.Place) {
        queue.remove(place)
        wakeWaiters()
    }

    /// Whether nobody who could take the card in a reader comes first.
    func isFirst(_ place: CardQueue.Place, for reader: Reader) -> Bool { queue.isFirst(place, for: reader, holders) }

    /// The users who hold a card.
    var holders: Set<CardQueue.User> { Set(readersByName.values.compactMap { $0.holder?.user }) }

    /// Tells each workflow that holds a card whether another user waits for it.
    func updateDemand() {
        for reader in readersByName.values {
            guard let holder = reader.holder else { continue }
            holder.workflow?.isAwaited =
                queue.isAwaited(reader, except: holder.user)
                || reader.supplies.contains { $0.place.user != holder.user }
        }
    }

    // MARK: Calls of workflows

    /// Lends a reader to an owner; `place` is that of a workflow. Returns false if another owner has the reader.
    func claim(_ reader: Reader, for owner: ObjectIdentifier, at place: CardQueue.Place? = nil) -> Bool {
        guard reader.owner == nil || reader.owner == owner, readersByName[reader.name] === reader else { return false }
        if reader.owner == nil {
            reader.owner = owner
            reader.holder = place
            if let place { queue.serve(place) }
            changed(reader.name)
        }
        return true
    }

    func release(_ reader: Reader) {
        guard reader.owner != nil else { return }
        if let holder = reader.holder {
            queue.serve(holder)
            holder.workflow?.isAwaited = false
        }
        reader.holder = nil
        reader.owner = nil
        reader.borrower = nil
        reader.isRead = false
        insertNextSupply(into: reader)
        changed(reader.name)
    }

    /// Replaces the known properties of a card.
    func update(_ reader: Reader, _ insertion: Insertion, _ profile: any CardProfile) {
        guard reader.insertion == insertion else { return }
        switch reader.card {
        case .none, .recognizing, .unusable: return
        case .unknown: reader.card = .known(profile)
        case .known(let old):
            reader.card = .known(profile)
            guard old.kind != profile.kind || old.members != profile.members else { return }
        }
        changed(reader.name)
    }

    /// Excludes the card from use until its next insertion.
    func markUnusable(_ reader: Reader, _ insertion: Insertion, _ failure: CardFailure) {
        guard reader.insertion == insertion else { return }
        reader.card = .unusable(failure)
        changed(reader.name)
    }

    // MARK: Hindrances

    /// Notes that something outside of the card keeps it from being used. Says nothing about the card.
    func hinder(_ reader: Reader, _ insertion: Insertion, _ obstacle: CardObstacle, isWatched: Bool = false) {
        guard reader.insertion == insertion else { return }
        let isNew = reader.hindrance?.obstacle != obstacle
        // The driver may have reported a program before the attempt failed because of it.
        let isWatched = isWatched || !isNew && reader.hindrance?.isWatched == true
        reader.hindrance = Reader.Hindrance(obstacle: obstacle, isWatched: isWatched)
        if isNew {
            log(.notice, "\(obstacle.text(reader.name))", reader.name)
            changed(reader.name)
        }
        if !isWatched, !queue.isEmpty { retryAlarm.set(after: Self.retryTime) }
    }

    /// Notes that the card in a reader was reached.
    func unhinder(_ reader: Reader, _ insertion: Insertion) {
        guard reader.insertion == insertion, reader.hindrance != nil else { return }
        reader.hindrance = nil
        wakeWaiters()
    }

    /// Allows new attempts for all cards whose hindrance ends without an event.
    private func retry() {
        for reader in readersByName.values where reader.hindrance?.isWatched == false {
            if case .recognizing = reader.card {
                recognizeAgain(reader)
            } else {
                reader.hindrance?.isDue = true
            }
        }
        wakeWaiters()
    }

    // MARK: Changes

    /// Removes the card of a virtual reader, and returns when the registry has handled the removal.
    func removeVirtualCard(from reader: Reader, _ insertion: Insertion) async {
        guard reader.description.takesCards, let backend = reader.backend as? any VirtualReaderBackend else { return }
        await backend.removeCard(from: reader.name)
        // Not `nextChange`, which does not wait in a cancelled task.
        while reader.insertion == insertion {
            await withCheckedContinuation { waiter in
                guard reader.insertion == insertion else { return waiter.resume() }
                nextWaiter += 1
                waiters[nextWaiter] = waiter
            }
        }
    }

    /// Returns at the next change of any reader, or when the task is cancelled.
    package func nextChange() async {
        // Taken before the task waits: the number is that of no other task.
        nextWaiter += 1
        let id = nextWaiter
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                guard !Task.isCancelled else { return waiter.resume() }
                waiters[id] = waiter
            }
        } onCancel: {
            Task { @Loop in self.waiters.removeValue(forKey: id)?.resume() }
        }
    }

    private func changed(_ name: String) {
        observer(name)
        wakeWaiters()
    }

    func wakeWaiters() {
        updateDemand()
        let all = waiters
        waiters = [:]
        for waiter in all.values { waiter.resume() }
    }

    // MARK: Health

    /// Logs each check that begins to fail, has other advice, or works again.
    private func logChanges(from before: [HealthCheck], to checks: [HealthCheck]) {
        for check in checks where !check.ok {
            if before.contains(where: { $0.name == check.name && !$0.ok && $0.advice == check.advice }) { continue }
            log(.notice, "\(check.name) does not work: \(check.advice ?? "see GET_HEALTH")", check.reader)
        }
        // A check that is left out because of another fault says nothing.
        let isWell = checks.allSatisfy(\.ok)
        for old in before where !old.ok && (isWell || checks.contains { $0.name == old.name && $0.ok }) {
            log(.notice, "\(old.name) works again", old.reader)
        }
    }

    /// The readers that are missing because of a fault, with the advice of their driver.
    package var failedReaders: [(reader: String, advice: Phrase)] {
        backends.flatMap { health[$0.name] ?? [] }.compactMap { check in
            guard !check.ok, let reader = check.reader, let advice = check.advice else { return nil }
            return (reader, advice)
        }
    }

    /// Returns the checks that backends have sent and those that they make on demand, in the order of the backends. A
    /// check on demand replaces one of the same name.
    func currentHealth() async -> [HealthCheck] {
        var checks: [HealthCheck] = []
        for backend in backends {
            let current = await backend.currentHealth()
            let sent = health[backend.name] ?? []
            checks += sent.filter { old in !current.contains { $0.name == old.name } } + current
        }
        return checks
    }
}
