// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners
import Wire

/// What one client wants of the radio, and what it has been told. Each reader is told at most every `updates`
/// milliseconds, unless it comes into range or leaves it; and all together at a rate that a flood of made-up readers
/// cannot raise.
@Loop final class ScanSubscription: Radio.Listener {
    /// How adverts are passed on as they are, for captures.
    enum Adverts: String, CaseIterable {
        /// Addresses are replaced, each by the same for a day.
        case hashed
        case raw
    }

    let filter: ScanFilter
    private let mode: ScanDemand.Mode
    private let updates: Milliseconds
    private let adverts: Adverts?
    /// Gone when the client is, which can be in the middle of telling it something.
    private weak var session: Session?
    private let radio: Radio
    /// SCAN has been answered.
    private var isAnswered = false

    private struct Told {
        let reader: DoorReader
        /// nil: not yet.
        var at: Milliseconds?
        var inRange: OpeningTypes = []
        var isWaiting = false
    }
    private var told: [Int: Told] = [:]
    /// Numbers of the readers of which there is news to tell; those before `head` are done.
    private var waiting: [Int] = []
    private var head = 0

    /// Messages that may be sent now, and how fast that grows.
    private static let burst = 100.0
    private static let rate = 0.2
    private var budget = burst
    private var budgetTime: Milliseconds = 0

    init(
        _ session: Session,
        _ radio: Radio,
        _ filter: ScanFilter,
        mode: ScanDemand.Mode,
        updates: Milliseconds,
        adverts: Adverts?
    ) {
        (self.session, self.radio, self.filter) = (session, radio, filter)
        (self.mode, self.updates, self.adverts) = (mode, updates, adverts)
        budgetTime = radio.now
    }

    var demand: ScanDemand {
        ScanDemand(mode: mode, profiles: filter.profiles, lockServiceCodes: filter.lockServiceCodes)
    }

    /// Begins with the readers that are known from the scans of others.
    func begin() {
        isAnswered = true
        let now = radio.now
        for reader in radio.tracker.readers(filter, activeOnly: true, at: now) {
            readerChanged(.appeared, reader, at: now)
        }
    }

    func radioStateChanged() {
        guard isAnswered, let session else { return }
        session.push(.door(.scan(session.scanState())), coalescing: "SCAN")
    }

    func received(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int) {
        // A fragment comes again as a part of the whole.
        guard let adverts, isAnswered, report.part == .whole, spend(radio.now) else { return }
        let address = adverts == .raw ? report.address : AddressPseudonym.of(report.address)
        var bytes: [UInt8] = []
        for index in data.indices { bytes.append(data[index]) }
        let advert = AdvertState(
            adapter: "hci\(adapter)",
            address: address.description,
            addressType: address.kind.rawValue,
            data: bytes,
            rssi: report.rssi,
            isScanResponse: report.isScanResponse
        )
        session?.push(.door(.advert(advert)))
    }

    // MARK: Telling

    func readerChanged(_ change: ReaderTracker.Change, _ reader: DoorReader, at now: Milliseconds) {
        guard isAnswered else { return }
        guard change != .lost, filter.matches(reader) else { return forget(reader) }
        var entry = told[reader.number] ?? Told(reader: reader)
        defer { told[reader.number] = entry }
        let isDue = entry.at.map { now - $0 >= updates || entry.inRange != reader.inRange } ?? true
        if isDue, !entry.isWaiting, spend(now) {
            tell(&entry, now)
        } else if !entry.isWaiting {
            entry.isWaiting = true
            waiting.append(reader.number)
            radio.scheduleAlarm(by: due(entry))
        } else if isDue, entry.at != nil, entry.inRange != reader.inRange, spend(now) {
            // It keeps its place in the row, where it then has nothing new to say.
            tell(&entry, now)
        }
    }

    private func tell(_ entry: inout Told, _ now: Milliseconds) {
        (entry.at, entry.inRange) = (now, entry.reader.inRange)
        guard let session else { return }
        session.push(
            .door(.reader(session.state(of: entry.reader, at: now, withHistory: false))),
            coalescing: "DOOR_READER \(entry.reader.number)"
        )
    }

    private func forget(_ reader: DoorReader) {
        guard let entry = told.removeValue(forKey: reader.number), entry.at != nil else { return }
        session?.push(.door(.lost(id: reader.id)), coalescing: "DOOR_READER \(reader.number)")
    }

    // MARK: Time

    private func refill(_ now: Milliseconds) {
        budget = min(Self.burst, budget + Double(now - budgetTime) * Self.rate)
        budgetTime = now
    }

    private func spend(_ now: Milliseconds) -> Bool {
        refill(now)
        guard budget >= 1 else { return false }
        budget -= 1
        return true
    }

    /// When the news of a reader may be told, as the budget was when it was last looked at.
    private func due(_ entry: Told) -> Milliseconds {
        let budgetDue = budget >= 1 ? budgetTime : budgetTime + Milliseconds((1 - budget) / Self.rate) + 1
        return max(entry.at.map { $0 + updates } ?? budgetTime, budgetDue)
    }

    var nextDeadline: Milliseconds? {
        while head < waiting.count {
            if let entry = told[waiting[head]] { return due(entry) }
            head += 1
        }
        return nil
    }

    func deadlinePassed(at now: Milliseconds) {
        refill(now)
        while head < waiting.count {
            let number = waiting[head]
            if var entry = told[number] {
                guard due(entry) <= now, spend(now) else { break }
                entry.isWaiting = false
                tell(&entry, now)
                told[number] = entry
            }
            head += 1
        }
        if head > 256 || head == waiting.count {
            waiting.removeFirst(head)
            head = 0
        }
    }
}
