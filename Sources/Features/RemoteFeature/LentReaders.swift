// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Drivers
import Host
import ISO7816
import Readers
import ReadersRemote
import Text

/// The shared readers, for one device that is connected to badged-remote: which it sees, and the cards that it holds.
///
/// It speaks the messages of a driver: badged has the readers here, and badged-remote asks.
@Loop final class LentReaders {
    let device: RemoteDevice
    private let registry: ReaderRegistry
    private let settings: LendingSettings
    private let report: @Loop (DriverReport) -> Void
    /// Called when the device begins or ends to use a card.
    private let usesChanged: @Loop () -> Void
    /// What the device was told.
    private var told: [String: Told] = [:]
    private var lastInsertion: UInt64 = 0
    /// By the number of the insertion.
    private var leases: [UInt64: CardLease] = [:]
    private var requests: [UInt32: Task<Void, Never>] = [:]
    private var watcher: Task<Void, Never>?
    /// Ends the use of cards by a device that says nothing.
    private lazy var idle = Loop.Alarm { [weak self] in self?.reclaimCards() }

    private struct Told {
        var description: ReaderDescription
        /// The card, and its number for the device.
        var card: (insertion: Insertion, number: UInt64)?
        /// Whether somebody else has the card.
        var isHeld = false
    }

    init(
        to device: RemoteDevice,
        _ registry: ReaderRegistry,
        _ settings: LendingSettings,
        report: @escaping @Loop (DriverReport) -> Void,
        usesChanged: @escaping @Loop () -> Void
    ) {
        self.device = device
        self.registry = registry
        self.settings = settings
        self.report = report
        self.usesChanged = usesChanged
    }

    /// The readers whose cards the device holds.
    var usedReaders: [String] { leases.values.map(\.reader.name).sorted() }

    /// Ends all uses of cards. A question at a reader with a keypad ends, too.
    func end() async {
        idle.cancel()
        watcher?.cancel()
        watcher = nil
        for request in requests.values { request.cancel() }
        for request in Array(requests.values) { await request.value }
        for number in Array(leases.keys) { await release(number) }
    }

    // MARK: Readers

    /// Begins to tell the device about the readers.
    private func look() {
        guard watcher == nil else { return }
        tellChanges()
        watcher = Task { @Loop [weak self, registry] in
            while !Task.isCancelled {
                // Also at the start: something may have changed since the task was made.
                self?.tellChanges()
                await registry.nextChange()
            }
        }
    }

    private func tellChanges() {
        for (number, lease) in leases where !lease.isCurrent {
            // The card is released in another task.
            leases[number] = nil
            Task { @Loop in
                await lease.release(removingVirtualCard: false)
                usesChanged()
            }
        }
        for name in settings.readers { tell(name) }
    }

    private func tell(_ name: String) {
        guard let reader = registry[name] else {
            if told.removeValue(forKey: name) != nil { report(.event(.removed(reader: name))) }
            return
        }
        var new = told[name] ?? Told(description: reader.description)
        if told[name] == nil {
            report(.event(.added(reader.description)))
        } else if new.description != reader.description {
            new.description = reader.description
            report(.event(.changed(reader.description)))
        }
        let insertion = registry.shownCard(in: name)
        if let card = new.card, card.insertion != insertion {
            report(.event(.withdrawn(Insertion(reader: name, number: card.number))))
            new.card = nil
            new.isHeld = false
        }
        if let insertion {
            let isHeld = !registry.hasCard(in: name, for: ObjectIdentifier(self))
            let isNew = new.card == nil
            if isNew {
                lastInsertion += 1
                new.card = (insertion, lastInsertion)
            }
            let own = Insertion(reader: name, number: new.card?.number ?? 0)
            if isHeld, isNew || !new.isHeld { report(.event(.held(own))) }
            if !isHeld, isNew { report(.event(.inserted(own, answerToReset: []))) }
            if !isHeld, !isNew, new.isHeld { report(.event(.changed(reader.description))) }
            new.isHeld = isHeld
        }
        told[name] = new
    }

    // MARK: Requests

    func handle(_ request: DriverRequest) {
        switch request {
        case .look: look()
        case .health(let id): report(.health(id: id, []))
        case .cancel(let id): requests[id]?.cancel()
        case .record(_, let id): report(.answer(id: id, .failure(.other(BoardRecording.noBoard))))
        case .progress: break
        case .card(let request, let number, let id):
            guard requests[id] == nil else { return }
            idle.cancel()
            requests[id] = Task { @Loop in
                let result = await Result { () async throws(CardError) in try await perform(request, number) }
                requests[id] = nil
                report(.answer(id: id, result))
                if !leases.isEmpty, watcher != nil { idle.set(after: settings.cardTime) }
            }
        }
    }

    private func perform(_ request: CardRequest, _ number: UInt64) async throws(CardError) -> CardAnswer {
        if case .connect = request {
            try await connect(number)
            return .done
        }
        guard let lease = leases[number], lease.isCurrent else { throw .removed }
        switch request {
        case .connect: return .done
        case .transmit(let command): return .response(try await lease.connection.transmit(command))
        case .release:
            await release(number)
            return .done
        case .establishPACE(let request):
            // CAN, PIN and PUK only.
            guard (2...4).contains(request.passwordID) else { throw .other("no such password") }
            // A card that leaves ends the question.
            let task = Task { @Loop in
                await Result { () async throws(CardError) in try await keypad(of: lease).establishPACE(request) }
            }
            let watch = Task { @Loop in
                await lease.cardLeaves()
                task.cancel()
            }
            let result = await task.cancellableValue
            watch.cancel()
            guard lease.isCurrent else { throw .removed }
            return .pace(try result.get())
        case .destroyPACE:
            try await keypad(of: lease).destroyPACE()
            return .done
        case .modifyPIN: return .status(try await keypad(of: lease).modifyPIN())
        }
    }

    private func keypad(of lease: CardLease) throws(CardError) -> any KeypadConnection {
        guard let keypad = lease.connection as? any KeypadConnection else { throw .other("no keypad") }
        return keypad
    }

    private func connect(_ number: UInt64) async throws(CardError) {
        guard let (name, card) = told.first(where: { $0.value.card?.number == number }).map({ ($0.key, $0.value) }),
            leases[number] == nil
        else { throw .removed }
        let lease = try await registry.lend(name, to: ObjectIdentifier(self), called: device.name)
        guard lease.insertion == card.card?.insertion, !Task.isCancelled else {
            await lease.release(removingVirtualCard: false)
            throw Task.isCancelled ? .cancelled : .removed
        }
        leases[number] = lease
        Log.info("device '\(device.name)' uses the card in '\(name)'")
        usesChanged()
    }

    private func release(_ number: UInt64) async {
        guard let lease = leases.removeValue(forKey: number) else { return }
        await lease.release(removingVirtualCard: false)
        usesChanged()
    }

    /// Releases the cards of a device that has them and says nothing, as if they had left their readers.
    private func reclaimCards() {
        for (number, lease) in leases {
            leases[number] = nil
            let reader = lease.reader.name
            Log.notice("device '\(device.name)' does not use the card in '\(reader)': it is free again")
            report(.event(.withdrawn(Insertion(reader: reader, number: number))))
            told[reader]?.card = nil
            told[reader]?.isHeld = false
            // The end of the use is a change, after which the device sees the card again.
            Task { @Loop in
                await lease.release(removingVirtualCard: false)
                usesChanged()
            }
        }
    }
}
