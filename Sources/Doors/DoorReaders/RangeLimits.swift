// SPDX-License-Identifier: GPL-3.0-or-later

/// How strong a reader must be heard to be in range, for each way of opening.
package struct RangeLimits: Sendable, Equatable {
    /// Where a limit comes from; the first that is there counts.
    package enum Source: String, Sendable {
        /// The operator's.
        case config
        /// The reader's own, clamped: whoever sends an advertisement could put any number into it.
        case advert
        case `default`
    }

    package struct Limit: Sendable, Equatable {
        /// dBm.
        package var value: Int
        package var source: Source

        package init(_ value: Int, _ source: Source) {
            (self.value, self.source) = (value, source)
        }
    }

    /// Shifts all limits alike.
    package enum Sensitivity: String, Sendable, CaseIterable {
        case high, normal, low

        /// dB.
        var shift: Int {
            switch self {
            case .high: -6
            case .normal: 0
            case .low: 6
            }
        }
    }

    /// Limits of badged.conf, by opening type.
    package var configured: [OpeningType: Int]
    package var sensitivity: Sensitivity
    /// A reader in range leaves it so many dB below the limit.
    package var hysteresis: Int

    package init(configured: [OpeningType: Int] = [:], sensitivity: Sensitivity = .normal, hysteresis: Int = 10) {
        (self.configured, self.sensitivity, self.hysteresis) = (configured, sensitivity, hysteresis)
    }

    /// What may be configured.
    package static let allowed = -100 ... -20

    /// The limit of a reader that advertises `advertised`.
    package func limit(_ type: OpeningType, advertised: ReaderFacts.Limits?) -> Limit {
        if let value = configured[type] { return Limit(value + sensitivity.shift, .config) }
        if let value = advertised?[type] {
            let range = Self.trusted(type)
            return Limit(min(max(Int(value), range.lowerBound), range.upperBound) + sensitivity.shift, .advert)
        }
        return Limit(Self.usual(type) + sensitivity.shift, .default)
    }

    /// dBm. That of motion is the vendor's; the others are to be calibrated. docs/door-readers.md.
    package static func usual(_ type: OpeningType) -> Int {
        switch type {
        case .proximity, .enhancedTap: -50
        case .motion: -74
        case .seamless: -70
        case .applicationSpecific: -80
        }
    }

    /// What an advertisement may ask for. Without the lower end a forged one would "tap" across the street.
    private static func trusted(_ type: OpeningType) -> ClosedRange<Int> {
        switch type {
        case .proximity, .enhancedTap: -65 ... -25
        case .motion, .applicationSpecific: -90 ... -25
        case .seamless: -85 ... -25
        }
    }
}
