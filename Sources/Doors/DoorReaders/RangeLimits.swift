// SPDX-License-Identifier: GPL-3.0-or-later
package import Host

/// The signal strength from which on a reader is in range, for each opening type.
package struct RangeLimits: Sendable {
    /// Where a limit comes from, in order of precedence.
    package enum Source: String, Sendable {
        /// badged.conf.
        case config
        /// The reader's advertisement, clamped: advertisements are not authenticated.
        case advert
        case `default`
    }

    package struct Limit: Sendable, Equatable {
        /// dBm.
        package var value: Int
        package var source: Source

        package init(_ value: Int, _ source: Source) {
            self.value = value
            self.source = source
        }
    }

    /// A reader leaves the range when its level is this many dB below the limit.
    static let hysteresis = 10.0

    /// Limits of badged.conf.
    private let configured: [OpeningType: Int]
    /// dB, added to every limit.
    private let shift: Int

    package init(_ configuration: RadioConfiguration = RadioConfiguration()) {
        let limits = configuration.limits.compactMap { name, value in OpeningType(name: name).map { ($0, value) } }
        configured = Dictionary(limits) { $1 }
        shift =
            switch configuration.sensitivity {
            case .high: -6
            case .normal: 0
            case .low: 6
            }
    }

    /// The limit of a reader that advertises the limits `advertised`.
    package func limit(_ type: OpeningType, advertised: DecodedAdvertisement.Limits?) -> Limit {
        if let value = configured[type] { return Limit(value + shift, .config) }
        if let value = advertised?[type] {
            let range = Self.acceptedRange(type)
            return Limit(min(max(Int(value), range.lowerBound), range.upperBound) + shift, .advert)
        }
        return Limit(Self.defaultLimit(type) + shift, .default)
    }

    /// dBm. The value for motion is the vendor's; the others need calibration. docs/door-readers.md.
    private static func defaultLimit(_ type: OpeningType) -> Int {
        switch type {
        case .proximity, .enhancedTap: -50
        case .motion: -74
        case .seamless: -70
        case .applicationSpecific: -80
        }
    }

    /// The range to which an advertised limit is clamped. The lower bound keeps a forged advertisement from putting a
    /// distant reader in range.
    private static func acceptedRange(_ type: OpeningType) -> ClosedRange<Int> {
        switch type {
        case .proximity, .enhancedTap: -65 ... -25
        case .motion, .applicationSpecific: -90 ... -25
        case .seamless: -85 ... -25
        }
    }
}
