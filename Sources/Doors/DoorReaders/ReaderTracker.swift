// SPDX-License-Identifier: GPL-3.0-or-later
package import Host

/// Turns received advertisements into readers that appear, change and are lost. An advertisement that matches no profile
/// is counted and not stored.
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
    }

    package let capacity: Int
    private let decoder: AdvertisementDecoder
    private let limits: RangeLimits
    /// Called for every change, before the call that caused it returns.
    package var observer: ((Change, DoorReader) -> Void)?
    package private(set) var counters = Counters()
    /// When `sweep` must be called; nil: no reader can change without an advertisement.
    package internal(set) var nextSweep: Milliseconds?

    package static let coolDown: Milliseconds = 2200
    /// How many readers in range are skipped in search of one that can be evicted.
    private static let evictionSearch = 64

    var table = ReaderTable()
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
        let content = report.part == .whole ? decoder.decode(data) : DecodedAdvertisement()
        if content.isMalformed { counters.malformed += 1 }
        if let reader = table.reader(at: report.address) {
            update(reader, content, report)
            addSample(to: reader, report, adapter, now)
        } else if content.isPhone {
            counters.phones += 1
        } else if let profile = content.profile, let rssi = report.rssi {
            addReader(profile, content, report, rssi, adapter, now)
        } else {
            counters.unmatched += 1
        }
    }

    private func addSample(to reader: DoorReader, _ report: AdvertisingReport, _ adapter: Int, _ now: Milliseconds) {
        guard let rssi = report.rssi else {
            if !reader.isLost { observer?(.updated, reader) }
            return
        }
        reader.addSample(rssi, adapter: adapter, at: now)
        reader.updateRange(at: now)
        table.moveToEnd(reader)
        let wasLost = reader.isLost
        reader.isLost = false
        if !mergeIntoKnownReader(reader, wasLost: wasLost, at: now) { reportPresence(of: reader, wasLost: wasLost) }
    }

    private func reportPresence(of reader: DoorReader, wasLost: Bool) {
        observer?(wasLost ? .appeared : .updated, reader)
    }

    /// Adds the sender of an unknown address, unless it is a known reader with a new address.
    private func addReader(
        _ profile: ReaderProfile,
        _ content: DecodedAdvertisement,
        _ report: AdvertisingReport,
        _ rssi: Int8,
        _ adapter: Int,
        _ now: Milliseconds
    ) {
        var identity = ReaderIdentity(
            report.address,
            profile,
            content.aliroReader,
            code: content.lockServiceCode,
            name: content.name
        )
        if let known = table.reader(identity) {
            if mayHaveNewAddress(known, at: now) {
                table.change(known, address: report.address)
                update(known, content, report)
                return addSample(to: known, report, adapter, now)
            }
            identity = .ephemeral(report.address)
        }
        guard makeRoom(at: now) else {
            counters.refused += 1
            return
        }
        lastNumber += 1
        let reader = DoorReader(
            identity,
            number: lastNumber,
            profile: profile,
            address: report.address,
            limits: limits,
            signals: AdapterSignals(rssi, adapter: adapter, at: now),
            at: now
        )
        update(reader, content, report)
        table.append(reader)
        if nextSweep == nil { nextSweep = now + SignalTrack.freshness + 1 }
        observer?(.appeared, reader)
    }

    /// Stores what an advertisement says. Values that the advertisement does not contain stay.
    private func update(_ reader: DoorReader, _ content: DecodedAdvertisement, _ report: AdvertisingReport) {
        if let name = content.name { reader.name = name }
        if let power = content.txPower ?? report.txPower { reader.txPower = power }
        guard content.profile != nil else { return }
        if let code = content.lockServiceCode { reader.lockServiceCode = code }
        if let power = content.powerAtOneMetre { reader.powerAtOneMetre = power }
        guard let types = content.openingTypes else { return }
        reader.isUnavailable = content.isUnavailable
        reader.advertisedTypes = types
        if let limits = content.limits { reader.advertisedLimits = limits }
    }

    // MARK: Identity

    /// Handles a name that a scan response adds to a reader with a changing address. The name can show that the reader is
    /// a known one with a new address. Then the known reader continues and this one is removed.
    /// - Returns: true when the readers were merged; the observer has been called.
    private func mergeIntoKnownReader(_ reader: DoorReader, wasLost: Bool, at now: Milliseconds) -> Bool {
        guard case .ephemeral = reader.identity, reader.name != nil else { return false }
        let identity = ReaderIdentity(
            reader.address,
            reader.profile,
            nil,
            code: reader.lockServiceCode,
            name: reader.name
        )
        guard case .fingerprint = identity else { return false }
        guard let known = table.reader(identity), known !== reader else {
            table.change(reader, identity: identity)
            return false
        }
        guard mayHaveNewAddress(known, at: now) else { return false }
        table.remove(reader)
        if !wasLost { observer?(.lost, reader) }
        table.change(known, address: reader.address)
        known.signals = reader.signals
        (known.lastSeen, known.inRange) = (reader.lastSeen, reader.inRange)
        known.adverts += reader.adverts
        table.moveToEnd(known)
        let knownWasLost = known.isLost
        known.isLost = false
        reportPresence(of: known, wasLost: knownWasLost)
        return true
    }

    /// Whether a sender with the identity of `reader` can be this reader with a new address. Two senders that are received
    /// at the same time are different readers, except for Aliro readers, whose identifier is unique.
    private func mayHaveNewAddress(_ reader: DoorReader, at now: Milliseconds) -> Bool {
        if case .aliro = reader.identity { return true }
        return !reader.signal.isFresh(at: now)
    }

    // MARK: Removal

    /// When the table is full, removes the least recently seen reader that is not in range.
    private func makeRoom(at now: Milliseconds) -> Bool {
        guard table.readers.count >= capacity else { return true }
        guard
            let reader = table.readers.prefix(Self.evictionSearch)
                .first(where: { $0.inRange.isEmpty || !$0.signal.isFresh(at: now) })
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
        for reader in table.readers where !reader.signals.remove(adapter: adapter) {
            if !reader.isLost { markLost(reader) }
            table.remove(reader)
        }
    }

    /// Removes all readers at the end of a scan; the observer is not called.
    package func removeAll() { (table, nextSweep) = (ReaderTable(), nil) }

    /// Starts the cool-down of a reader after a successful opening.
    package func opened(_ reader: DoorReader, at now: Milliseconds) { reader.coolsDownUntil = now + Self.coolDown }
}
