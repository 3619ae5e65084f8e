// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// What one advertisement says about its sender. Advertisements are not authenticated.
package struct DecodedAdvertisement: Sendable, Equatable {
    /// nil: the data matches no profile. Such data can still belong to a reader that another advertisement identified.
    package var profile: ReaderProfile?
    /// Without repetitions, in the order of the advertisement.
    package var lockServiceCodes: [Int] = []
    /// The first one of `lockServiceCodes`.
    package var lockServiceCode: Int? { lockServiceCodes.first }
    package var openingTypes: OpeningTypes?
    package var limits: Limits?
    package var name: String?
    /// dBm at the antenna of the sender.
    package var txPower: Int8?
    /// dBm at a distance of one metre.
    package var powerAtOneMetre: Int8?
    package var aliroReader: AliroAdvertisement?
    package var beacon: Beacon?
    /// The reader accepts no credentials now.
    package var isUnavailable = false
    /// The sender is a phone that emulates a reader or a beacon.
    package var isPhone = false
    /// An AD structure extends beyond the end of the data.
    package var isMalformed = false

    /// The advertised range limits in dBm; nil where the reader advertises none.
    package struct Limits: Sendable, Equatable {
        package var proximity: Int8?
        package var motion: Int8?
        package var seamless: Int8?
        package var enhancedTap: Int8?

        package init(proximity: Int8? = nil, motion: Int8? = nil, seamless: Int8? = nil, enhancedTap: Int8? = nil) {
            self.proximity = proximity
            self.motion = motion
            self.seamless = seamless
            self.enhancedTap = enhancedTap
        }

        package subscript(_ type: OpeningType) -> Int8? {
            switch type {
            case .proximity: proximity
            case .motion: motion
            case .seamless: seamless
            case .applicationSpecific: nil
            case .enhancedTap: enhancedTap
            }
        }
    }

    /// What an iBeacon says of its place.
    package struct Beacon: Hashable, Sendable {
        /// The 16 bytes of the UUID, the first one highest.
        package var number: UInt128
        package var major: UInt16
        package var minor: UInt16

        /// The UUID in groups of 8, 4, 4, 4 and 12 lower-case digits.
        package var uuid: String {
            withUnsafeBytes(of: number.bigEndian) { UUIDText.encode($0) }
        }
    }

    /// Group and sub-group of an Aliro reader; they stay the same under every address.
    package struct AliroAdvertisement: Hashable, Sendable {
        package var group: UInt64
        package var subGroup: UInt16
    }
}
