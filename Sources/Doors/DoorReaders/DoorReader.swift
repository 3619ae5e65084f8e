// SPDX-License-Identifier: GPL-3.0-or-later

/// A door reader or beacon whose advertisements a `ReaderTracker` has received. Only the tracker changes it.
package final class DoorReader {
    package internal(set) var identity: ReaderIdentity
    /// The identifier that clients see.
    package let id: String
    /// Unique within one scan, in the order of discovery.
    package let number: Int
    package let profile: ReaderProfile
    package internal(set) var address: DeviceAddress
    package internal(set) var name: String?
    package internal(set) var lockServiceCode: Int?
    /// The opening types that the reader advertised last; nil: none so far.
    package internal(set) var advertisedTypes: OpeningTypes?
    package internal(set) var advertisedLimits: DecodedAdvertisement.Limits?
    /// dBm at the antenna of the reader.
    package internal(set) var txPower: Int8?
    /// dBm at a distance of one metre.
    package internal(set) var powerAtOneMetre: Int8?
    /// The reader advertises that it accepts no credentials now.
    package internal(set) var isUnavailable = false
    package let firstSeen: Milliseconds
    package internal(set) var lastSeen: Milliseconds
    /// Number of advertisements with a signal strength.
    package internal(set) var adverts = 0
    /// Average time between two advertisements; nil before the second one.
    package internal(set) var interval: Milliseconds?
    /// The opening types for which the reader is in range.
    package internal(set) var inRange: OpeningTypes = []
    package internal(set) var isLost = false
    /// After an opening the reader is not offered again until this time.
    package internal(set) var coolsDownUntil: Milliseconds?
    var signals: AdapterSignals
    private let limits: RangeLimits

    init(
        _ identity: ReaderIdentity,
        number: Int,
        profile: ReaderProfile,
        address: DeviceAddress,
        limits: RangeLimits,
        signals: AdapterSignals,
        at now: Milliseconds
    ) {
        (self.identity, self.number, self.profile, self.address) = (identity, number, profile, address)
        (self.limits, self.signals) = (limits, signals)
        id = identity.text(profile, number: number)
        (firstSeen, lastSeen) = (now, now)
        adverts = 1
    }

    package var openingTypes: OpeningTypes { advertisedTypes ?? profile.usualOpeningTypes }

    package func limit(_ type: OpeningType) -> RangeLimits.Limit {
        limits.limit(type, advertised: advertisedLimits)
    }

    /// The adapter that receives the reader best.
    package var adapter: Int { signals.bestAdapter }

    /// The signal at that adapter.
    package var signal: SignalTrack { signals.best }

    /// The reader is lost after this time without an advertisement: 10 s, or four of its intervals, 60 s at most.
    package var lossTimeout: Milliseconds { min(max(10_000, 4 * (interval ?? 0)), 60_000) }

    package func isActive(at now: Milliseconds) -> Bool { !isLost && now - lastSeen <= lossTimeout }

    package func coolsDown(at now: Milliseconds) -> Bool { coolsDownUntil.map { now < $0 } ?? false }
}
