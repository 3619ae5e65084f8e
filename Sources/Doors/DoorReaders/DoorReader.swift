// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// A door reader or beacon whose advertisements a `ReaderTracker` has received. Only the tracker changes it.
package final class DoorReader {
    package internal(set) var identity: ReaderIdentity
    /// The identifier that clients see.
    package let id: String
    /// Unique within one scan, in the order of discovery.
    package let number: Int
    package let profile: ReaderProfile
    package internal(set) var address: DeviceAddress
    var facts = ReaderFacts()
    /// When the first and the last advertisement were received, on the clock of the tracker.
    package let firstSeen: Milliseconds
    package internal(set) var lastSeen: Milliseconds
    /// `lastSeen` in listening time.
    var lastHeard: Milliseconds
    /// Number of advertisements with a signal strength.
    package internal(set) var adverts = 0
    /// Average time between two advertisements; nil before the second one.
    package internal(set) var interval: Milliseconds?
    /// The opening types for which the reader is in range.
    package internal(set) var inRange: OpeningTypes = []
    package internal(set) var isLost = false
    /// The reader was received at the same time as another one with the same identity.
    var isDistinct = false
    /// After an opening the reader is not offered again until this time.
    package internal(set) var coolsDownUntil: Milliseconds?
    var signals: AdapterSignals
    private let limits: RangeLimits
    let time: ListeningTime

    init(
        _ identity: ReaderIdentity,
        number: Int,
        profile: ReaderProfile,
        address: DeviceAddress,
        limits: RangeLimits,
        first: HeldSender.Sample,
        time: ListeningTime
    ) {
        self.identity = identity
        self.number = number
        self.profile = profile
        self.address = address
        self.limits = limits
        self.time = time
        id = identity.text(profile, number: number)
        firstSeen = first.time
        lastSeen = first.time
        lastHeard = first.heard
        signals = AdapterSignals(first.rssi, adapter: first.adapter, at: first.time, heard: first.heard)
        adverts = 1
    }

    // MARK: Facts

    package var name: String? { facts.name }
    /// The lock service codes, in the order in which they were heard first.
    package var lockServiceCodes: [Int] { facts.lockServiceCodes }
    /// The first one of `lockServiceCodes`.
    package var lockServiceCode: Int? { lockServiceCodes.first }
    /// dBm at the antenna of the reader.
    package var txPower: Int8? { facts.txPower }
    /// dBm at a distance of one metre.
    package var powerAtOneMetre: Int8? { facts.powerAtOneMetre }
    /// The place of an iBeacon; nil for other readers.
    package var beacon: DecodedAdvertisement.Beacon? { facts.beacon }
    /// The reader advertises that it accepts no credentials now.
    package var isUnavailable: Bool { facts.isUnavailable }

    package var openingTypes: OpeningTypes { facts.advertisedTypes ?? profile.usualOpeningTypes }

    /// The signal strength from which on the reader is in range for an opening type.
    package func limit(_ type: OpeningType) -> RangeLimits.Limit {
        limits.limit(type, advertised: facts.advertisedLimits)
    }

    /// The adapter that receives the reader best.
    package var adapter: Int { signals.bestAdapter }

    /// The signal at that adapter.
    package var signal: SignalTrack { signals.best }

    // MARK: Age

    /// The reader is lost after this time without an advertisement: 10 s, or four of its intervals, 60 s at most. An
    /// interval is not shorter than the time after which the radio reports a sender again. Pauses of the radio do not
    /// count.
    package var lossTimeout: Milliseconds {
        min(max(10_000, 4 * max(interval ?? 0, time.repeatInterval ?? 0)), 60_000)
    }

    /// Whether an advertisement was received within `lossTimeout`.
    package func isActive(at now: Milliseconds) -> Bool { !isLost && time.heard(at: now) - lastHeard <= lossTimeout }

    /// Whether a sample is recent enough for decisions.
    package func isFresh(at now: Milliseconds) -> Bool { signal.isFresh(at: time.heard(at: now)) }

    /// At most three fresh signal strengths, newest first.
    package func list(at now: Milliseconds) -> [Int8] { signal.list(at: time.heard(at: now)) }

    /// Mean of `list`; nil with fewer than two values.
    package func mean(at now: Milliseconds) -> Double? { signal.mean(at: time.heard(at: now)) }

    /// Median of at most five fresh values; nil with fewer than two.
    package func median(at now: Milliseconds) -> Double? { signal.median(at: time.heard(at: now)) }

    /// Whether the reader was opened so recently that it is not offered again.
    package func coolsDown(at now: Milliseconds) -> Bool { coolsDownUntil.map { now < $0 } ?? false }
}

extension DoorReader {
    func add(_ sample: HeldSender.Sample) {
        updateInterval(sample.heard)
        signals.add(sample.rssi, adapter: sample.adapter, at: sample.time, heard: sample.heard)
        adverts += 1
        (lastSeen, lastHeard) = (max(sample.time, lastSeen), max(sample.heard, lastHeard))
    }

    /// Updates a moving average. An advertisement and its scan response arrive within 20 ms and count as one; a pause
    /// of more than 15 s is not an interval.
    private func updateInterval(_ heard: Milliseconds) {
        let pause = heard - lastHeard
        guard (20...15_000).contains(pause) else { return }
        interval = interval.map { $0 + (pause - $0) / 8 } ?? pause
    }

    /// Updates `inRange`. A reader enters the range at the limit, with at least two fresh samples. It leaves the range
    /// when the level falls below the limit by the hysteresis, or when no sample is fresh.
    func updateRange(at now: Milliseconds) {
        let (signal, heard) = (signal, time.heard(at: now))
        guard signal.freshCount(at: heard) >= 2 || !inRange.isEmpty else { return }
        guard signal.isFresh(at: heard) else {
            inRange = []
            return
        }
        for type in OpeningType.allCases where openingTypes.contains(type) {
            let limit = Double(limit(type).value)
            if inRange.contains(type) {
                if signal.level < limit - RangeLimits.hysteresis { inRange.remove(OpeningTypes(type)) }
            } else if signal.level >= limit {
                inRange.insert(OpeningTypes(type))
            }
        }
        inRange.formIntersection(openingTypes)
    }

    /// An estimate for display; walls and bodies make it unreliable.
    package struct Distance: Sendable, Equatable {
        /// Metres.
        package var metres, low, high: Double
    }

    /// The distance by the log-distance model, 10^((power - level) / 10n); nil when the power at one metre is unknown.
    /// The bounds use exponents n from 2 (free space) to 4 (walls) and an error of 6 dB.
    package var distance: Distance? {
        guard let powerAtOneMetre else { return nil }
        let loss = Double(powerAtOneMetre) - signal.level
        func metres(_ loss: Double, _ n: Double) -> Double { pow(10, loss / (10 * n)) }
        let bounds = [loss - 6, loss + 6].flatMap { [metres($0, 2), metres($0, 4)] }
        return Distance(metres: metres(loss, 2.5), low: bounds.min() ?? 0, high: bounds.max() ?? 0)
    }
}
