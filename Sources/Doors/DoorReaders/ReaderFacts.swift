// SPDX-License-Identifier: GPL-3.0-or-later

/// What the advertisements of one sender have said about it. Values that an advertisement does not contain stay.
struct ReaderFacts {
    var name: String?
    /// In the order in which they were heard first.
    var lockServiceCodes: [Int] = []
    /// The opening types that the reader advertised last; nil: none so far.
    var advertisedTypes: OpeningTypes?
    var advertisedLimits: DecodedAdvertisement.Limits?
    /// dBm at the antenna of the reader.
    var txPower: Int8?
    /// dBm at a distance of one metre.
    var powerAtOneMetre: Int8?
    /// The place of an iBeacon.
    var beacon: DecodedAdvertisement.Beacon?
    /// The reader advertises that it accepts no credentials now.
    var isUnavailable = false

    /// Codes that are kept for one reader. Anybody can advertise further ones.
    private static let maximumCodes = 8

    mutating func update(_ content: DecodedAdvertisement, _ report: AdvertisingReport) {
        if let name = content.name { self.name = name }
        if let power = content.txPower ?? report.txPower { txPower = power }
        guard content.profile != nil else { return }
        for code in content.lockServiceCodes { add(code) }
        if let power = content.powerAtOneMetre { powerAtOneMetre = power }
        if let beacon = content.beacon { self.beacon = beacon }
        guard let types = content.openingTypes else { return }
        isUnavailable = content.isUnavailable
        advertisedTypes = types
        if let limits = content.limits { advertisedLimits = limits }
    }

    /// Adds what the same sender has said under a newer address.
    mutating func update(_ newer: ReaderFacts) {
        name = newer.name ?? name
        txPower = newer.txPower ?? txPower
        for code in newer.lockServiceCodes { add(code) }
        powerAtOneMetre = newer.powerAtOneMetre ?? powerAtOneMetre
        beacon = newer.beacon ?? beacon
        guard let types = newer.advertisedTypes else { return }
        isUnavailable = newer.isUnavailable
        advertisedTypes = types
        advertisedLimits = newer.advertisedLimits ?? advertisedLimits
    }

    private mutating func add(_ code: Int) {
        guard !lockServiceCodes.contains(code) else { return }
        if lockServiceCodes.count == Self.maximumCodes { lockServiceCodes.removeFirst() }
        lockServiceCodes.append(code)
    }
}
