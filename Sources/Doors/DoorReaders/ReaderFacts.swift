// SPDX-License-Identifier: GPL-3.0-or-later

/// What one advertisement says about its sender. All of it is hearsay: nothing in an advertisement is authenticated.
package struct ReaderFacts: Sendable, Equatable {
    /// nil: matches none; then it may still name a device that is known from another advertisement.
    package var profile: ReaderProfile?
    package var lockServiceCode: Int?
    package var openingTypes: OpeningTypes?
    /// dBm from which on the reader wants to be opened, by `OpeningType.index`; nil where it does not say.
    package var limits: Limits?
    /// Where the local name lies in the data.
    package var name: Range<Int>?
    /// dBm at the sender.
    package var txPower: Int8?
    /// dBm at a distance of one metre.
    package var powerAtOneMetre: Int8?
    /// Group and sub-group of an Aliro reader: the same under every address.
    package var aliroReader: AliroReader?
    /// The reader says that it cannot take credentials now.
    package var isUnavailable = false
    /// Sent by a phone that plays a reader or a beacon.
    package var isPhone = false
    /// An AD structure ran beyond the end of the data.
    package var isMalformed = false

    package init() {}

    /// Limits in an advertisement.
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

    package struct AliroReader: Hashable, Sendable {
        package var group: UInt64
        package var subGroup: UInt16

        package init(group: UInt64, subGroup: UInt16) {
            (self.group, self.subGroup) = (group, subGroup)
        }
    }
}
