// SPDX-License-Identifier: GPL-3.0-or-later

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
    package var aliroReader: AliroReader?
    /// The reader accepts no credentials now.
    package var isUnavailable = false
    /// The sender is a phone that emulates a reader or a beacon.
    package var isPhone = false
    /// An AD structure extends beyond the end of the data.
    package var isMalformed = false

    package init() {}

    /// The advertised range limits in dBm; nil where the reader advertises none.
    package struct Limits: Sendable, Equatable {
        package var proximity: Int8?
        package var motion: Int8?
        package var seamless: Int8?
        package var enhancedTap: Int8?

        package init(proximity: Int8? = nil, motion: Int8? = nil, seamless: Int8? = nil, enhancedTap: Int8? = nil) {
            (self.proximity, self.motion) = (proximity, motion)
            (self.seamless, self.enhancedTap) = (seamless, enhancedTap)
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

    /// Group and sub-group of an Aliro reader; they stay the same under every address.
    package struct AliroReader: Hashable, Sendable {
        package var group: UInt64
        package var subGroup: UInt16

        package init(group: UInt64, subGroup: UInt16) {
            (self.group, self.subGroup) = (group, subGroup)
        }
    }
}
