// SPDX-License-Identifier: GPL-3.0-or-later

/// Turns what the radio hears into readers that appear, change and are lost. Of advertisements that match no profile
/// nothing is kept but their number.
package final class ReaderTracker {
    package enum Change: Sendable {
        case appeared, updated, lost
    }

    /// What was heard and what became of it.
    package struct Counters: Sendable, Equatable {
        package var heard = 0
        package var unmatched = 0
        package var malformed = 0
        /// From phones that play a reader.
        package var phones = 0
        /// Not taken in, for the table was full of readers in range.
        package var refused = 0
        package var evicted = 0
    }

    package let capacity: Int
    package let decoder: AdvertisementDecoder
    package let limits: RangeLimits
    /// Told of every change, before the call that made it returns.
    package var observer: ((Change, DoorReader) -> Void)?
    package private(set) var counters = Counters()
    /// When `sweep` is due; nil: never, as nothing can change by itself.
    package private(set) var nextSweep: Milliseconds?

    /// A lost reader is still in the full list for so long.
    package static let memory: Milliseconds = 600_000
    package static let coolDown: Milliseconds = 2200
    /// Sweeps are not closer together.
    private static let sweepPause: Milliseconds = 250
    /// How many readers in range are passed over in search of one that may go.
    private static let evictionSearch = 64

    private var byAddress: [DeviceAddress: DoorReader] = [:]
    private var byIdentity: [ReaderIdentity: DoorReader] = [:]
    private var oldest: DoorReader?
    private var newest: DoorReader?
    private var count = 0
    private var lastNumber = 0

    package init(
        capacity: Int = 4096,
        decoder: AdvertisementDecoder = AdvertisementDecoder(),
        limits: RangeLimits = RangeLimits()
    ) {
        (self.capacity, self.decoder, self.limits) = (max(capacity, 1), decoder, limits)
    }

    deinit { removeAll() }

    // MARK: Hearing

    /// Takes one report in. `data` may be empty when only the strength of a known sender has changed.
    package func hear(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int, at now: Milliseconds) {
        counters.heard += 1
        let facts = report.part == .whole ? decoder.facts(in: data) : ReaderFacts()
        if facts.isMalformed { counters.malformed += 1 }
        if let reader = byAddress[report.address] {
            take(facts, data, report, into: reader)
            heard(reader, report, adapter, now)
        } else if facts.isPhone {
            counters.phones += 1
        } else if let profile = facts.profile, let rssi = report.rssi {
            admit(profile, facts, data, report, rssi, adapter, now)
        } else {
            counters.unmatched += 1
        }
    }

    private func heard(_ reader: DoorReader, _ report: AdvertisingReport, _ adapter: Int, _ now: Milliseconds) {
        guard let rssi = report.rssi else {
            if !reader.isLost { observer?(.updated, reader) }
            return
        }
        reader.addSample(rssi, adapter: adapter, at: now)
        reader.updateRange(hysteresis: limits.hysteresis, at: now)
        moveToNewest(reader)
        let change: Change = reader.isLost ? .appeared : .updated
        reader.isLost = false
        if !joinsAnother(reader, change, at: now) { observer?(change, reader) }
    }

    private func admit(
        _ profile: ReaderProfile,
        _ facts: ReaderFacts,
        _ data: Span<UInt8>,
        _ report: AdvertisingReport,
        _ rssi: Int8,
        _ adapter: Int,
        _ now: Milliseconds
    ) {
        let name = facts.name.flatMap { AdvertisementDecoder.name(data, $0) }
        let identity = ReaderIdentity(report.address, facts, profile, code: facts.lockServiceCode, name: name)
        if let known = byIdentity[identity], mayMove(known, at: now) {
            move(known, to: report.address)
            take(facts, data, report, into: known)
            return heard(known, report, adapter, now)
        }
        guard makeRoom(at: now) else {
            counters.refused += 1
            return
        }
        lastNumber += 1
        let unique = byIdentity[identity] == nil ? identity : .ephemeral(report.address)
        let reader = DoorReader(
            unique,
            number: lastNumber,
            profile: profile,
            address: report.address,
            adapter: adapter,
            rssi: rssi,
            at: now
        )
        reader.adverts = 1
        take(facts, data, report, into: reader)
        recalculateLimits(of: reader)
        byAddress[report.address] = reader
        byIdentity[unique] = reader
        count += 1
        append(reader)
        if nextSweep == nil { nextSweep = now + SignalTrack.freshness + 1 }
        observer?(.appeared, reader)
    }

    /// Keeps what was said: an advertisement that says less does not take it back.
    private func take(_ facts: ReaderFacts, _ data: Span<UInt8>, _ report: AdvertisingReport, into reader: DoorReader) {
        if let name = facts.name, !isSame(reader.name, data, name) {
            reader.name = AdvertisementDecoder.name(data, name) ?? reader.name
        }
        if let power = facts.txPower ?? report.txPower { reader.txPower = power }
        guard facts.profile != nil else { return }
        if let code = facts.lockServiceCode { reader.lockServiceCode = code }
        if let power = facts.powerAtOneMetre { reader.powerAtOneMetre = power }
        guard let types = facts.openingTypes else { return }
        reader.isUnavailable = facts.isUnavailable
        if types != reader.advertisedTypes || facts.limits != reader.advertisedLimits {
            reader.advertisedTypes = types
            if let limits = facts.limits { reader.advertisedLimits = limits }
            recalculateLimits(of: reader)
        }
    }

    private func isSame(_ name: String?, _ data: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard let utf8 = name?.utf8, utf8.count == range.count else { return false }
        return zip(utf8, range).allSatisfy { $0 == data[$1] }
    }

    private func recalculateLimits(of reader: DoorReader) {
        for type in OpeningType.allCases {
            reader.limits[type.index] = limits.limit(type, advertised: reader.advertisedLimits)
        }
    }

    // MARK: Identity

    /// A name can become known later than the reader, and show that it is another one's new address: then it is gone,
    /// and the other one has been told of.
    private func joinsAnother(_ reader: DoorReader, _ change: Change, at now: Milliseconds) -> Bool {
        guard case .ephemeral = reader.identity, reader.name != nil else { return false }
        let identity = ReaderIdentity(
            reader.address,
            ReaderFacts(),
            reader.profile,
            code: reader.lockServiceCode,
            name: reader.name
        )
        guard case .fingerprint = identity else { return false }
        guard let known = byIdentity[identity], known !== reader else {
            byIdentity[reader.identity] = nil
            byIdentity[identity] = reader
            reader.identity = identity
            return false
        }
        guard mayMove(known, at: now) else { return false }
        remove(reader)
        if change == .updated { observer?(.lost, reader) }
        move(known, to: reader.address)
        known.tracks = reader.tracks
        (known.leading, known.challenger) = (reader.leading, nil)
        (known.lastHeard, known.inRange) = (reader.lastHeard, reader.inRange)
        known.adverts += reader.adverts
        moveToNewest(known)
        let knownChange: Change = known.isLost ? .appeared : .updated
        known.isLost = false
        observer?(knownChange, known)
        return true
    }

    /// The same reader under a new address, or another one that looks alike? As long as the old address is heard, the
    /// latter; an Aliro reader says itself which it is.
    private func mayMove(_ reader: DoorReader, at now: Milliseconds) -> Bool {
        if case .aliro = reader.identity { return true }
        return !reader.signal.isFresh(at: now)
    }

    private func move(_ reader: DoorReader, to address: DeviceAddress) {
        byAddress[reader.address] = nil
        reader.address = address
        byAddress[address] = reader
    }

    // MARK: Time

    /// Finds out who has fallen silent. To be called when `nextSweep` has come; earlier does no harm.
    package func sweep(at now: Milliseconds) {
        nextSweep = nil
        var next = oldest
        while let reader = next {
            next = reader.newer
            guard now - reader.lastHeard > SignalTrack.freshness else {
                schedule(reader.lastHeard + SignalTrack.freshness + 1, now)
                break
            }
            if !reader.inRange.isEmpty {
                reader.updateRange(hysteresis: limits.hysteresis, at: now)
                if reader.isActive(at: now) { observer?(.updated, reader) }
            }
            if reader.isActive(at: now) {
                schedule(reader.lastHeard + reader.patience + 1, now)
            } else if !reader.isLost {
                lose(reader)
            }
            guard reader.isLost else { continue }
            if now - reader.lastHeard > Self.memory {
                remove(reader)
            } else {
                schedule(reader.lastHeard + Self.memory + 1, now)
            }
        }
    }

    private func schedule(_ time: Milliseconds, _ now: Milliseconds) {
        let time = max(time, now + Self.sweepPause)
        nextSweep = nextSweep.map { min($0, time) } ?? time
    }

    private func lose(_ reader: DoorReader) {
        reader.isLost = true
        reader.inRange = []
        observer?(.lost, reader)
    }

    /// An adapter has gone, and with it what it alone has heard.
    package func forget(adapter: Int) {
        for reader in readers where !reader.forget(adapter: adapter) {
            if !reader.isLost { lose(reader) }
            remove(reader)
        }
    }

    /// The scan has ended; nobody is told.
    package func removeAll() {
        // One by one: the list must not end in a recursion as deep as it is long.
        while let reader = oldest { remove(reader) }
        nextSweep = nil
    }

    /// An opening has succeeded: the reader is left alone for a moment.
    package func opened(_ reader: DoorReader, at now: Milliseconds) { reader.coolsDownUntil = now + Self.coolDown }

    // MARK: Asking

    /// All that are remembered, least recently heard first.
    package var readers: [DoorReader] {
        var all: [DoorReader] = []
        all.reserveCapacity(count)
        var next = oldest
        while let reader = next {
            all.append(reader)
            next = reader.newer
        }
        return all
    }

    /// Strongest first.
    package func readers(_ filter: ScanFilter, activeOnly: Bool, at now: Milliseconds) -> [DoorReader] {
        readers.filter { filter.admits($0) && (!activeOnly || $0.isActive(at: now)) }.sorted {
            ($0.isActive(at: now) ? 0 : 1, -$0.signal.level, $0.number)
                < ($1.isActive(at: now) ? 0 : 1, -$1.signal.level, $1.number)
        }
    }

    /// Why there is no closest reader.
    package enum Absence: String, Error, Sendable {
        /// No active reader.
        case none
        /// The nearest cannot be opened that way.
        case notSupported
        case outOfRange
        /// The nearest has just been opened.
        case coolingDown
    }

    /// The nearest active reader, if it can be opened that way and is near enough for it. That another one, farther
    /// away, could be opened does not help: the person stands before this one.
    package func closest(
        for type: OpeningType,
        _ filter: ScanFilter,
        at now: Milliseconds
    ) -> Result<DoorReader, Absence> {
        let fresh = readers(filter, activeOnly: true, at: now).first { !$0.openingTypes.isEmpty }
        guard let reader = fresh else { return .failure(.none) }
        if reader.coolsDown(at: now) { return .failure(.coolingDown) }
        guard reader.openingTypes.contains(type) else { return .failure(.notSupported) }
        return reader.inRange.contains(type) && reader.signal.isFresh(at: now)
            ? .success(reader) : .failure(.outOfRange)
    }

    // MARK: The table

    /// Takes the least recently heard reader out that is not in range, when the table is full.
    private func makeRoom(at now: Milliseconds) -> Bool {
        guard count >= capacity else { return true }
        var next = oldest
        for _ in 0..<Self.evictionSearch {
            guard let reader = next else { return false }
            if reader.inRange.isEmpty || !reader.signal.isFresh(at: now) {
                counters.evicted += 1
                if !reader.isLost { lose(reader) }
                remove(reader)
                return true
            }
            next = reader.newer
        }
        return false
    }

    private func remove(_ reader: DoorReader) {
        unlink(reader)
        count -= 1
        if byAddress[reader.address] === reader { byAddress[reader.address] = nil }
        if byIdentity[reader.identity] === reader { byIdentity[reader.identity] = nil }
    }

    private func append(_ reader: DoorReader) {
        reader.older = newest
        newest?.newer = reader
        newest = reader
        if oldest == nil { oldest = reader }
    }

    private func unlink(_ reader: DoorReader) {
        let (older, newer) = (reader.older, reader.newer)
        if let older { older.newer = newer } else { oldest = newer }
        if let newer { newer.older = older } else { newest = older }
        (reader.older, reader.newer) = (nil, nil)
    }

    private func moveToNewest(_ reader: DoorReader) {
        guard newest !== reader else { return }
        unlink(reader)
        append(reader)
    }
}
