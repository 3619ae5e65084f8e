// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import EID
import ISO7816
package import Readers

/// A reader as clients see it, with the card in it and the workflow that holds it.
@Loop package final class Reader {
    package enum Card {
        case none
        /// Put in, not known yet; for clients there is no card so far.
        case identifying
        case unusable(CardObstacle)
        case eid(EIDProfile, inoperative: Bool)
    }

    package let name: String
    package fileprivate(set) var description: ReaderDescription
    package fileprivate(set) var insertion: Insertion?
    package fileprivate(set) var card = Card.none
    /// The session whose workflow holds the reader.
    package fileprivate(set) var owner: ObjectIdentifier?
    /// The workflow whose SET_CARD has put the card in.
    fileprivate var supplier: ObjectIdentifier?
    let backend: any ReaderBackend
    fileprivate var identification: Task<Void, Never>?

    /// What clients are told of an eID card; nil for no card or another one.
    package var eidState: (retryCounter: Int, deactivated: Bool, inoperative: Bool)? {
        guard case .eid(let profile, let inoperative) = card else { return nil }
        return (profile.status.retryCounter, profile.status.deactivated, inoperative)
    }

    /// There is a card that no workflow can use.
    fileprivate var isUseless: Bool {
        switch card {
        case .none, .identifying: false
        case .unusable: true
        case .eid(let profile, let inoperative): profile.status.deactivated || inoperative
        }
    }

    fileprivate init(_ description: ReaderDescription, _ backend: any ReaderBackend) {
        (self.name, self.description, self.backend) = (description.name, description, backend)
    }
}

/// Merges the readers of all backends, identifies each card once per insertion, and lends readers to workflows.
@Loop package final class ReaderRegistry {
    /// Called after each change that clients can see, with the name of the reader.
    package var observer: @Loop (_ reader: String) -> Void = { _ in }
    package var log: @Loop (_ text: String) -> Void = { _ in }

    private var readersByName: [String: Reader] = [:]
    private var backends: [any ReaderBackend] = []
    /// By reader: how many cards have left before it was known what they are.
    private(set) var unseenLosses: [String: Int] = [:]
    private var consumers: [Task<Void, Never>] = []
    private var health: [String: [HealthCheck]] = [:]
    private var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var nextWaiter: UInt64 = 0

    package nonisolated init() {}

    /// Sorted by name.
    package var readers: [Reader] { readersByName.values.sorted { $0.name < $1.name } }

    package subscript(_ name: String) -> Reader? { readersByName[name] }

    package var drivers: [String] { backends.map(\.name) }

    package func add(_ backend: any ReaderBackend) {
        backends.append(backend)
        let events = backend.events
        consumers.append(
            Task { @Loop [weak self] in
                for await event in events { self?.handle(event, from: backend) }
            }
        )
    }

    /// Returns when at least so many readers are known.
    package func waitForReaders(_ count: Int) async {
        while readersByName.count < count { await nextChange() }
    }

    /// Has the backends look for readers that come without an event.
    package func rescan() {
        for backend in backends { backend.rescan() }
    }

    /// Gives the readers back and ends the watching of all.
    package func stop() async {
        for backend in backends { await backend.close() }
        for consumer in consumers { consumer.cancel() }
        consumers = []
    }

    // MARK: Events

    private func handle(_ event: ReaderEvent, from backend: any ReaderBackend) {
        switch event {
        case .added(let description):
            guard readersByName[description.name] == nil else {
                log("reader '\(description.name)' of \(backend.name) has the name of another one and is left out")
                return
            }
            readersByName[description.name] = Reader(description, backend)
            changed(description.name)
        case .changed(let description):
            guard let reader = reader(description.name, of: backend) else { return }
            reader.description = description
            // A card that could not be looked at because of another program gets another look.
            if case .unusable(.exclusive) = reader.card, let insertion = reader.insertion {
                // Clients hear of it when it is known; until then it would look taken out.
                identify(reader, insertion)
            } else {
                changed(description.name)
            }
        case .removed(let name):
            guard let reader = reader(name, of: backend) else { return }
            reader.identification?.cancel()
            (reader.insertion, reader.card, reader.supplier) = (nil, .none, nil)
            readersByName[name] = nil
            changed(name)
        case .inserted(let insertion, _):
            guard let reader = reader(insertion.reader, of: backend) else { return }
            identify(reader, insertion)
        case .withdrawn(let insertion):
            guard let reader = reader(insertion.reader, of: backend), reader.insertion == insertion else { return }
            reader.identification?.cancel()
            let wasVisible =
                switch reader.card {
                case .none, .identifying: false
                case .unusable, .eid: true
                }
            (reader.insertion, reader.card, reader.supplier) = (nil, .none, nil)
            if wasVisible {
                changed(reader.name)
            } else {
                unseenLosses[reader.name, default: 0] += 1
                wakeWaiters()
            }
        case .health(let checks):
            health[backend.name] = checks
        }
    }

    private func reader(_ name: String, of backend: any ReaderBackend) -> Reader? {
        guard let reader = readersByName[name], reader.backend.name == backend.name else { return nil }
        return reader
    }

    /// Tries twice: a card that is still moving often misses the first command. No secret is involved.
    private func identify(_ reader: Reader, _ insertion: Insertion) {
        reader.identification?.cancel()
        (reader.insertion, reader.card) = (insertion, .identifying)
        let backend = reader.backend
        reader.identification = Task { @Loop [weak self] in
            var card = Reader.Card.none
            for attempt in 1...2 {
                do throws(CardError) {
                    let connection = try await backend.connect(insertion)
                    let identity: CardIdentity
                    do throws(CardError) {
                        identity = try await EIDCard.identify(on: connection)
                    } catch {
                        await connection.disconnect(reset: true)
                        throw error
                    }
                    await connection.disconnect(reset: false)
                    switch identity {
                    case .unknown: card = .unusable(.unknownCard)
                    case .eid(let profile): card = .eid(profile, inoperative: false)
                    }
                    break
                } catch {
                    self?.log("card in '\(insertion.reader)' could not be identified, try \(attempt): \(error)")
                    guard let obstacle = CardObstacle(error) else { break }
                    card = .unusable(obstacle)
                    if obstacle == .exclusive || obstacle == .accessDenied { break }
                }
            }
            guard let self, !Task.isCancelled, reader.insertion == insertion else { return }
            guard case .identifying = reader.card else { return }
            reader.card = card
            self.changed(reader.name)
        }
    }

    // MARK: What workflows do

    /// Takes a reader for a session; false when another one has it.
    func claim(_ reader: Reader, for owner: ObjectIdentifier) -> Bool {
        guard reader.owner == nil || reader.owner == owner, readersByName[reader.name] === reader else { return false }
        if reader.owner == nil {
            reader.owner = owner
            changed(reader.name)
        }
        return true
    }

    func release(_ reader: Reader) {
        guard reader.owner != nil else { return }
        reader.owner = nil
        changed(reader.name)
    }

    /// A workflow has read the state of the PIN.
    func update(_ reader: Reader, _ insertion: Insertion, _ status: PINStatus) {
        guard reader.insertion == insertion, case .eid(let old, let inoperative) = reader.card else { return }
        guard old.status != status else { return }
        let profile = EIDProfile(applicationID: old.applicationID, cardAccess: old.cardAccess, status: status)
        // A PIN that can be tried again shows that the PUK has worked.
        reader.card = .eid(profile, inoperative: inoperative && status.retryCounter == 0)
        changed(reader.name)
    }

    func markInoperative(_ reader: Reader, _ insertion: Insertion) {
        guard reader.insertion == insertion, case .eid(let profile, false) = reader.card else { return }
        reader.card = .eid(profile, inoperative: true)
        changed(reader.name)
    }

    /// Until it is put in again the card is left alone.
    func markUnusable(_ reader: Reader, _ insertion: Insertion, _ obstacle: CardObstacle?) {
        guard reader.insertion == insertion else { return }
        reader.card = obstacle.map { .unusable($0) } ?? .none
        changed(reader.name)
    }

    /// Puts a card into a virtual reader. SET_CARD. A card there that no workflow can use makes room, for there is no
    /// hand to take it out.
    /// - Parameters:
    ///   - description: of a new card; nil: the one on the shelf.
    ///   - reader: a virtual one.
    ///   - supplier: the workflow to which the card belongs; it goes back to the shelf with it.
    /// - Throws: `CardShelfError`; then nothing has changed.
    package func insert(
        _ description: VirtualCardDescription?,
        into reader: Reader,
        for supplier: ObjectIdentifier? = nil
    ) async throws(CardShelfError) {
        guard let shelf = reader.backend as? any CardShelf else { throw .unknownReader }
        if let insertion = reader.insertion, reader.owner == nil, reader.isUseless {
            await shelve(reader, insertion)
        }
        try await shelf.insert(description, into: reader.name)
        reader.supplier = supplier
    }

    /// Takes the cards of a workflow that is over out of virtual readers, unless another workflow has them.
    package func takeCardsBack(of supplier: ObjectIdentifier) async {
        for reader in readers where reader.supplier == supplier && reader.owner == nil {
            if let insertion = reader.insertion {
                await shelve(reader, insertion)
            } else {
                // It has not been heard of yet.
                await (reader.backend as? any CardShelf)?.shelve(reader: reader.name)
            }
        }
    }

    /// Takes the card of a virtual reader out and waits until everybody knows.
    func shelve(_ reader: Reader, _ insertion: Insertion) async {
        guard reader.description.takesCards, let shelf = reader.backend as? any CardShelf else { return }
        await shelf.shelve(reader: reader.name)
        // Also in a cancelled task, in which `nextChange` would not wait.
        while reader.insertion == insertion {
            await withCheckedContinuation { addWaiter($0) }
        }
    }

    /// Returns at the next change of any reader, or when the task is cancelled.
    func nextChange() async {
        let id = nextWaiter
        await withTaskCancellationHandler {
            guard !Task.isCancelled else { return }
            await withCheckedContinuation { addWaiter($0) }
        } onCancel: {
            Task { @Loop in self.waiters.removeValue(forKey: id)?.resume() }
        }
    }

    private func addWaiter(_ waiter: CheckedContinuation<Void, Never>) {
        waiters[nextWaiter] = waiter
        nextWaiter += 1
    }

    private func changed(_ name: String) {
        observer(name)
        wakeWaiters()
    }

    private func wakeWaiters() {
        let all = waiters
        waiters = [:]
        for waiter in all.values { waiter.resume() }
    }

    // MARK: Health

    /// The checks that backends have sent, and those they make on demand, in the order of the backends.
    package func currentHealth() async -> [HealthCheck] {
        var checks: [HealthCheck] = []
        for backend in backends {
            checks += health[backend.name] ?? []
            checks += await backend.currentHealth()
        }
        return checks
    }
}
