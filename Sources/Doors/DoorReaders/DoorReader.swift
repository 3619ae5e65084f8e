// SPDX-License-Identifier: GPL-3.0-or-later

/// A reader that is or was heard. Belongs to a `ReaderTracker`, which alone changes it.
package final class DoorReader {
    package internal(set) var identity: ReaderIdentity
    package internal(set) var id: String
    package let number: Int
    package internal(set) var profile: ReaderProfile
    package internal(set) var address: DeviceAddress
    package internal(set) var name: String?
    package internal(set) var lockServiceCode: Int?
    /// What the reader advertises, kept since it was heard last; nil: never.
    package internal(set) var advertisedTypes: OpeningTypes?
    package internal(set) var advertisedLimits: ReaderFacts.Limits?
    package internal(set) var txPower: Int8?
    package internal(set) var powerAtOneMetre: Int8?
    package internal(set) var isUnavailable = false
    package let firstHeard: Milliseconds
    package internal(set) var lastHeard: Milliseconds
    package internal(set) var adverts = 0
    /// Learned time between two advertisements; nil before the second.
    package internal(set) var interval: Milliseconds?
    /// For which ways of opening it is near enough.
    package internal(set) var inRange: OpeningTypes = []
    package internal(set) var isLost = false
    /// After an opening it is left alone for a moment.
    package internal(set) var coolsDownUntil: Milliseconds?
    /// By `OpeningType.index`.
    var limits: [5 of RangeLimits.Limit] = .init(repeating: .init(0, .default))

    /// One for each adapter that hears it, few.
    var tracks: [(adapter: Int, track: SignalTrack)]
    /// Which of them speaks for the reader, and since when another one is clearly better.
    var leading = 0
    var challenger: (index: Int, since: Milliseconds)?

    /// Its place in the tracker's list by age. The older neighbour leaves the list before it goes away, and takes this
    /// reference with it; a counted one would cost more than the rest of a report.
    unowned(unsafe) var older: DoorReader?
    var newer: DoorReader?

    init(
        _ identity: ReaderIdentity,
        number: Int,
        profile: ReaderProfile,
        address: DeviceAddress,
        adapter: Int,
        rssi: Int8,
        at now: Milliseconds
    ) {
        (self.identity, self.number, self.profile, self.address) = (identity, number, profile, address)
        id = identity.text(profile, number: number)
        (firstHeard, lastHeard) = (now, now)
        tracks = [(adapter, SignalTrack(rssi, at: now))]
    }

    package var openingTypes: OpeningTypes { advertisedTypes ?? profile.usualOpeningTypes }

    package func limit(_ type: OpeningType) -> RangeLimits.Limit { limits[type.index] }

    /// The adapter that hears it best.
    package var adapter: Int { tracks[leading].adapter }

    package var signal: SignalTrack { tracks[leading].track }

    /// Silent for so long it is lost: 10 s, or four of its intervals.
    package var patience: Milliseconds { min(max(10_000, 4 * (interval ?? 0)), 60_000) }

    package func isActive(at now: Milliseconds) -> Bool { !isLost && now - lastHeard <= patience }

    package func coolsDown(at now: Milliseconds) -> Bool { coolsDownUntil.map { now < $0 } ?? false }
}
