// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Glibc
import Scanners
import Server
import Text

/// The scan of one client: its settings, and the readers that were reported to the client.
///
/// Each reader is reported at most every `updates` milliseconds, unless it comes into range or leaves the range. The
/// rate of all messages together is limited, so forged readers cannot flood the client.
@Loop final class ScanSubscription: Radio.Listener {
    let filter: ScanFilter
    private let settings: ScanSettings
    /// Weak, because the client can disconnect while messages are sent.
    private weak var session: Session?
    private unowned let feature: DoorFeature
    private let radio: Radio
    /// Whether SCAN has been answered.
    private var isAnswered = false

    private struct Entry {
        let reader: DoorReader
        /// The time of the last message about the reader; nil before the first one.
        var sentAt: Milliseconds?
        var sentInRange: OpeningTypes = []
        var isWaiting = false
    }
    private var entries: [Int: Entry] = [:]
    /// Numbers of the readers that wait for a message; those before `head` are done.
    private var waiting: [Int] = []
    private var head = 0

    /// The number of messages that may be sent at once, and the number per millisecond after that.
    private static let burst = 100.0
    private static let rate = 0.2
    private var budget = burst
    private var budgetTime: Milliseconds = 0
    /// Advertisements that were not sent since the last ADVERT.
    private var lostAdverts = 0

    init(_ session: Session, _ feature: DoorFeature, _ radio: Radio, _ settings: ScanSettings) {
        self.session = session
        self.feature = feature
        self.radio = radio
        self.settings = settings
        filter = settings.filter
        budgetTime = radio.now
    }

    /// Whether the client receives whole advertisements.
    var isCapturing: Bool { settings.adverts != nil }

    var demand: ScanDemand {
        ScanDemand(mode: settings.mode, profiles: filter.profiles, lockServiceCodes: filter.lockServiceCodes)
    }

    /// Reports the readers that are known from the scans of other clients.
    func begin() {
        isAnswered = true
        let now = radio.now
        for reader in radio.tracker.readers(filter, activeOnly: true, at: now) {
            readerChanged(.appeared, reader, at: now)
        }
    }

    func radioStateChanged() {
        guard isAnswered, let session else { return }
        session.push(ScanMessage(scan: feature.scanState(of: session)), coalescing: "SCAN")
    }

    func received(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int) {
        // A fragment is received again as a part of the whole advertisement.
        guard let adverts = settings.adverts, isAnswered, report.part == .whole, let session else { return }
        let address = adverts == .raw ? report.address : AddressPseudonym.of(report.address)
        var bytes: [UInt8] = []
        for index in data.indices { bytes.append(data[index]) }
        let message = WrittenMessage("ADVERT") { [bytes, lostAdverts] object in
            object.member("adapter", "hci\(adapter)")
            object.member("address", address.description)
            object.member("addressType", address.kind.rawValue)
            object.member("data", Hex.encode(bytes))
            // Advertisements before this one that were not sent, because the client was slow to read.
            if lostAdverts > 0 { object.member("lost", lostAdverts) }
            object.member("rssi", report.rssi)
            object.member("scanResponse", report.isScanResponse)
        }
        lostAdverts = session.offer(message) ? 0 : lostAdverts + 1
    }

    // MARK: Messages

    func readerChanged(_ change: ReaderTracker.Change, _ reader: DoorReader, at now: Milliseconds) {
        guard isAnswered else { return }
        let isLost = change == .lost || !filter.matches(reader)
        if let session { feature.noticed(reader, isLost: isLost, session, at: now) }
        guard !isLost else { return forget(reader) }
        var entry = entries[reader.number] ?? Entry(reader: reader)
        defer { entries[reader.number] = entry }
        let isDue = entry.sentAt.map { now - $0 >= settings.updates || entry.sentInRange != reader.inRange } ?? true
        if isDue, !entry.isWaiting, spend(now) {
            send(&entry, now)
        } else if !entry.isWaiting {
            entry.isWaiting = true
            waiting.append(reader.number)
            radio.scheduleAlarm(by: due(entry))
        } else if isDue, entry.sentAt != nil, entry.sentInRange != reader.inRange, spend(now) {
            // The reader keeps its place in the queue. Without a change it causes no message there.
            send(&entry, now)
        }
    }

    private func send(_ entry: inout Entry, _ now: Milliseconds) {
        (entry.sentAt, entry.sentInRange) = (now, entry.reader.inRange)
        guard let session else { return }
        let state = DoorReaderState(entry.reader, at: now, withHistory: false)
        let message = WrittenMessage("DOOR_READER") { object in object.object("reader") { state.write(to: &$0) } }
        session.push(message, coalescing: "DOOR_READER \(entry.reader.number)")
    }

    private func forget(_ reader: DoorReader) {
        guard let entry = entries.removeValue(forKey: reader.number), entry.sentAt != nil else { return }
        let lost = WrittenMessage("DOOR_READER_LOST") { $0.member("id", reader.id) }
        session?.push(lost, coalescing: "DOOR_READER \(reader.number)")
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

    /// The time at which the change of a reader may be reported, from the budget as last computed.
    private func due(_ entry: Entry) -> Milliseconds {
        let budgetDue = budget >= 1 ? budgetTime : budgetTime + Milliseconds((1 - budget) / Self.rate) + 1
        return max(entry.sentAt.map { $0 + settings.updates } ?? budgetTime, budgetDue)
    }

    var nextDeadline: Milliseconds? {
        while head < waiting.count {
            if let entry = entries[waiting[head]] { return due(entry) }
            head += 1
        }
        return nil
    }

    func deadlinePassed(at now: Milliseconds) {
        refill(now)
        while head < waiting.count {
            let number = waiting[head]
            if var entry = entries[number] {
                guard due(entry) <= now, spend(now) else { break }
                entry.isWaiting = false
                send(&entry, now)
                entries[number] = entry
            }
            head += 1
        }
        if head > 256 || head == waiting.count {
            waiting.removeFirst(head)
            head = 0
        }
    }
}

/// Replaces the real address of a device in captures.
///
/// The pseudonym has the same address type. It stays the same for a day, but changes when the daemon restarts, because
/// its key is the random seed of Swift's `Hasher`.
enum AddressPseudonym {
    static func of(_ address: DeviceAddress) -> DeviceAddress {
        var hasher = Hasher()
        hasher.combine(time(nil) / 86_400)
        hasher.combine(address)
        let hash = UInt64(truncatingIfNeeded: hasher.finalize())
        // The two highest bits are the type of a random address.
        let kind: UInt64 = 3 << 46
        return DeviceAddress(bits: hash & ~kind | address.bits & kind, isRandom: address.isRandom)
    }
}
