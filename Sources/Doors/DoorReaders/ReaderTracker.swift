// SPDX-License-Identifier: GPL-3.0-or-later
package import Host

/// Turns received advertisements into readers that appear, change and are lost. An advertisement that matches no
/// profile is counted and not stored.
package final class ReaderTracker {
    package enum Change: Sendable {
        case appeared, updated, lost
    }

    /// Numbers of advertisements and readers.
    package struct Counters: Sendable, Equatable {
        package var received = 0
        package var unmatched = 0
        package var malformed = 0
        /// Advertisements of phones that emulate a reader.
        package var phones = 0
        /// New readers that were ignored because the table was full of readers in range.
        package var refused = 0
        package var evicted = 0
        /// Later fragments that looked like the advertisement of a reader and were ignored.
        package var fragments = 0
    }

    /// The largest number of readers that are remembered.
    package let capacity: Int
    private let decoder: AdvertisementDecoder
    /// Called for every change, before the call that caused it returns.
    package var observer: ((Change, DoorReader) -> Void)?
    package private(set) var counters = Counters()
    /// When `sweep` must be called; nil: no reader can change without an advertisement.
    package internal(set) var nextSweep: Milliseconds?

    /// Called when a new reader with a changing address has no name, by which it would be recognised under another
    /// address. Names are often in scan responses only.
    package var wantsNames: (() -> Void)?

    /// The keys by which readers are recognised under each of their addresses, and the order in which those keys were
    /// written that have resolved an address. See `use`.
    private var identityKeys: [IdentityKey] = []
    package private(set) var keyOrders: [String: IdentityKey.Order] = [:]

    /// How long a reader is not offered again after an opening.
    package static let coolDown: Milliseconds = 2200
    /// How many readers in range are skipped in search of one that can be evicted.
    private static let evictionSearch = 64

    var table = ReaderTable()
    /// Senders that are not reported yet, by address.
    var held: [DeviceAddress: HeldSender] = [:]
    /// How often the later fragments of a sender were ignored.
    private var fragmented: [DeviceAddress: Int] = [:]
    private static let maximumFragmented = 64
    /// Two advertisements of one sender follow each other by chance a few times. From this number on, they are taken
    /// for fragments.
    private static let fragmentProof = 10
    let time = ListeningTime()
    /// The closest reader at the last advertisement.
    private var nearest: DoorReader?
    /// Another reader takes its place when it is stronger by this many dB.
    private static let lead = 3.0
    private let limits: RangeLimits
    private var lastNumber = 0

    package init(capacity: Int = 4096, configuration: RadioConfiguration = RadioConfiguration()) {
        self.capacity = max(capacity, 1)
        decoder = AdvertisementDecoder(codeEncoding: configuration.codeEncoding)
        limits = RangeLimits(configuration)
    }

    // MARK: Advertisements

    /// Processes one report. `data` may be empty when only the signal strength of a known sender has changed.
    package func receive(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int, at now: Milliseconds) {
        counters.received += 1
        var content = report.part == .whole ? decoder.decode(data) : DecodedAdvertisement()
        if content.isMalformed { counters.malformed += 1 }
        if report.isContinuation, let profile = content.profile { check(profile, report, &content) }
        if let reader = table.reader(at: report.address) {
            reader.facts.update(content, report)
            addSample(to: reader, report, adapter, now)
            releaseRivals(of: reader, at: now)
        } else if var sender = held.removeValue(forKey: report.address) {
            sender.facts.update(content, report)
            if let rssi = report.rssi { sender.add(sample(rssi, adapter, now)) }
            settle(sender, at: now)
        } else if content.isPhone {
            counters.phones += 1
        } else if let profile = content.profile, let rssi = report.rssi {
            var sender = HeldSender(profile, report.address, content.aliroReader, sample(rssi, adapter, now))
            sender.facts.update(content, report)
            settle(sender, isNew: true, at: now)
        } else {
            counters.unmatched += 1
        }
    }

    /// Ignores the content of a later fragment when it would make a new reader, because its data may begin within a
    /// structure.
    private func check(_ profile: ReaderProfile, _ report: AdvertisingReport, _ content: inout DecodedAdvertisement) {
        let known = table.reader(at: report.address)?.profile ?? held[report.address]?.profile
        guard known != profile else { return }
        content = DecodedAdvertisement()
        counters.fragments += 1
        if fragmented.count >= Self.maximumFragmented, fragmented[report.address] == nil { fragmented = [:] }
        fragmented[report.address, default: 0] += 1
    }

    /// The number of senders that look like readers in later fragments only.
    package var fragmentedSenders: Int { fragmented.values.filter { $0 >= Self.fragmentProof }.count }

    private func sample(_ rssi: Int8, _ adapter: Int, _ now: Milliseconds) -> HeldSender.Sample {
        HeldSender.Sample(rssi: rssi, adapter: adapter, time: now, heard: time.heard(at: now))
    }

    private func addSample(to reader: DoorReader, _ report: AdvertisingReport, _ adapter: Int, _ now: Milliseconds) {
        guard let rssi = report.rssi else {
            if !reader.isLost { observer?(.updated, reader) }
            return
        }
        reader.add(sample(rssi, adapter, now))
        reader.updateRange(at: now)
        table.reorder(reader)
        let wasLost = reader.isLost
        reader.isLost = false
        updateNearest(reader, at: now)
        if !mergeIntoKnownReader(reader, wasLost: wasLost, at: now) { reportPresence(of: reader, wasLost: wasLost) }
    }

    func reportPresence(of reader: DoorReader, wasLost: Bool) {
        observer?(wasLost ? .appeared : .updated, reader)
    }

    /// Adds a sender as a reader of its own.
    func addReader(_ sender: HeldSender, _ identity: ReaderIdentity, at now: Milliseconds) {
        guard let first = sender.samples.first, makeRoom(at: now) else {
            counters.refused += 1
            return
        }
        lastNumber += 1
        let reader = DoorReader(
            identity,
            number: lastNumber,
            profile: sender.profile,
            address: sender.address,
            limits: limits,
            first: first,
            time: time
        )
        fragmented[sender.address] = nil
        reader.facts = sender.facts
        reader.isDistinct = sender.isDistinct
        for sample in sender.samples.dropFirst() { reader.add(sample) }
        reader.updateRange(at: now)
        table.append(reader)
        updateNearest(reader, at: now)
        schedule(reader.lastHeard + SignalTrack.freshness + 1, now)
        observer?(.appeared, reader)
    }

    // MARK: Removal

    /// When the table is full, removes the least recently seen reader that is not in range.
    private func makeRoom(at now: Milliseconds) -> Bool {
        guard table.readers.count >= capacity else { return true }
        guard
            let reader = table.readers.prefix(Self.evictionSearch)
                .first(where: { $0.inRange.isEmpty || !$0.isFresh(at: now) })
        else { return false }
        counters.evicted += 1
        if !reader.isLost { markLost(reader) }
        table.remove(reader)
        return true
    }

    func markLost(_ reader: DoorReader) {
        reader.isLost = true
        reader.inRange = []
        observer?(.lost, reader)
    }

    /// Drops the samples of an adapter that was removed, and the readers that only this adapter has received.
    package func remove(adapter: Int) {
        for (address, var sender) in held { held[address] = sender.remove(adapter: adapter) ? sender : nil }
        for reader in table.readers where !reader.signals.remove(adapter: adapter) {
            if !reader.isLost { markLost(reader) }
            table.remove(reader)
        }
    }

    // MARK: Identity resolving keys

    /// Replaces the identity resolving keys. Readers that have another identity by these keys are lost, and appear under
    /// it when they are received again.
    package func use(_ keys: [IdentityKey]) {
        identityKeys = keys
        keyOrders = keyOrders.filter { known in keys.contains { $0.name == known.key } }
        for reader in table.readers {
            let name = keyName(of: reader.address)
            let isRight =
                switch reader.identity {
                case .resolved(_, let old): old == name
                case .aliro, .address: true
                case .fingerprint, .ephemeral: name == nil
                }
            guard !isRight else { continue }
            if !reader.isLost { markLost(reader) }
            table.remove(reader)
        }
    }

    /// The name of the key that resolves an address; nil: there is none.
    func keyName(of address: DeviceAddress) -> String? {
        for key in identityKeys {
            guard let order = key.resolve(address) else { continue }
            keyOrders[key.name] = order
            return key.name
        }
        return nil
    }

    // MARK: The radio

    /// Must be called when the radio begins a pause in which it receives nothing, or ends it. A pause makes no reader
    /// leave the range.
    package func setPaused(_ isPaused: Bool, at now: Milliseconds) {
        let wasPaused = time.isPaused
        time.setPaused(isPaused, at: now)
        // During a pause no sweep is scheduled.
        if wasPaused, !isPaused { nextSweep = now + 1 }
    }

    /// The radio reports each sender only once in this time; nil: it reports every advertisement.
    package func setRepeatInterval(_ interval: Milliseconds?) { time.repeatInterval = interval }

    /// Starts the cool-down of a reader after a successful opening.
    package func opened(_ reader: DoorReader, at now: Milliseconds) { reader.coolsDownUntil = now + Self.coolDown }
}

extension ReaderTracker {
    /// A lost reader stays in the full list for this time.
    package static let retention: Milliseconds = 600_000
    /// Shortest time between two sweeps.
    private static let shortestPause: Milliseconds = 250

    /// Finds readers that are not received any more: they leave the range, are lost, and are removed in the end. Must
    /// be called at `nextSweep`; earlier calls are harmless.
    package func sweep(at now: Milliseconds) {
        nextSweep = nil
        let heard = time.heard(at: now)
        settleHeldSenders(at: now)
        for reader in table.readers {
            guard heard - reader.lastHeard > SignalTrack.freshness else {
                schedule(reader.lastHeard + SignalTrack.freshness + 1, now)
                // All others were seen later.
                break
            }
            if !reader.inRange.isEmpty {
                reader.updateRange(at: now)
                if reader.isActive(at: now) { observer?(.updated, reader) }
            }
            if reader.isActive(at: now) {
                schedule(reader.lastHeard + reader.lossTimeout + 1, now)
            } else if !reader.isLost {
                markLost(reader)
            }
            guard reader.isLost else { continue }
            if heard - reader.lastHeard > Self.retention {
                table.remove(reader)
            } else {
                schedule(reader.lastHeard + Self.retention + 1, now)
            }
        }
    }

    /// Schedules a sweep for this listening time. During a pause of the radio no time passes; its end causes a sweep.
    func schedule(_ deadline: Milliseconds, _ now: Milliseconds) {
        guard !time.isPaused else { return }
        let due = now + max(deadline - time.heard(at: now), Self.shortestPause)
        nextSweep = nextSweep.map { min($0, due) } ?? due
    }
}

extension ReaderTracker {
    /// All remembered readers, least recently seen first.
    package var readers: [DoorReader] { table.readers }

    /// The readers that match a filter: active ones first, then by level, strongest first.
    package func readers(_ filter: ScanFilter, activeOnly: Bool, at now: Milliseconds) -> [DoorReader] {
        readers.filter { filter.matches($0) && (!activeOnly || $0.isActive(at: now)) }.sorted {
            ($0.isActive(at: now) ? 0 : 1, -$0.signal.level, $0.number)
                < ($1.isActive(at: now) ? 0 : 1, -$1.signal.level, $1.number)
        }
    }

    package enum Closest {
        case reader(DoorReader)
        case none(Absence)
    }

    /// Why there is no closest reader.
    package enum Absence: String, Sendable {
        /// No reader is active.
        case none
        /// The closest reader does not support the opening type.
        case notSupported
        case outOfRange
        /// The closest reader was opened a moment ago.
        case coolingDown
    }

    /// The signal strength by which readers are compared, in dBm.
    private func strength(of reader: DoorReader, at now: Milliseconds) -> Double {
        reader.signal.strength(at: time.heard(at: now)) + (reader === nearest ? Self.lead : 0)
    }

    /// Must be called when a reader was received.
    private func updateNearest(_ reader: DoorReader, at now: Milliseconds) {
        guard !reader.openingTypes.isEmpty else { return }
        // A reader that is not fresh, or another one, has no new value.
        let rivals =
            reader === nearest
            ? table.readers.reversed().prefix { $0.isFresh(at: now) } : [reader, nearest].compactMap(\.self)
        nearest = rivals.filter { !$0.isLost && !$0.openingTypes.isEmpty }.max {
            strength(of: $0, at: now) < strength(of: $1, at: now)
        }
    }

    /// The closest active reader that can be opened in any way, in range or not.
    package func closest(_ filter: ScanFilter, at now: Milliseconds) -> DoorReader? {
        readers.filter { filter.matches($0) && $0.isActive(at: now) && !$0.openingTypes.isEmpty }.max {
            strength(of: $0, at: now) < strength(of: $1, at: now)
        }
    }

    /// The closest active reader, if it supports the opening type and is in range for it. Readers that are farther away
    /// are no substitute, because the person stands in front of the closest one.
    package func closest(
        for type: OpeningType,
        _ filter: ScanFilter,
        at now: Milliseconds
    ) -> Closest {
        guard let reader = closest(filter, at: now) else { return .none(.none) }
        if reader.coolsDown(at: now) { return .none(.coolingDown) }
        guard reader.openingTypes.contains(type) else { return .none(.notSupported) }
        return reader.inRange.contains(type) && reader.isFresh(at: now)
            ? .reader(reader) : .none(.outOfRange)
    }
}
