// SPDX-License-Identifier: GPL-3.0-or-later

/// A way of opening a door with a phone in the hand or in the pocket; the numbers are the bits of the mask that Seos-style
/// readers advertise.
package enum OpeningType: UInt8, Sendable, CaseIterable {
    /// The phone is held to the reader.
    case proximity = 0x01
    /// The phone is turned ("twist and go").
    case motion = 0x02
    /// Nothing is done at all.
    case seamless = 0x04
    /// The application decides.
    case applicationSpecific = 0x08
    /// As proximity, but the reader connects to the phone.
    case enhancedTap = 0x40

    /// Its name in messages.
    package var name: String {
        switch self {
        case .proximity: "proximity"
        case .motion: "motion"
        case .seamless: "seamless"
        case .applicationSpecific: "applicationSpecific"
        case .enhancedTap: "enhancedTap"
        }
    }

    package init?(name: String) {
        guard let type = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = type
    }

    /// Place in tables that have a row for each type.
    package var index: Int {
        switch self {
        case .proximity: 0
        case .motion: 1
        case .seamless: 2
        case .applicationSpecific: 3
        case .enhancedTap: 4
        }
    }
}

/// A set of ways of opening.
package struct OpeningTypes: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package init(_ type: OpeningType) { rawValue = type.rawValue }

    package static let proximity = OpeningTypes(.proximity)
    package static let motion = OpeningTypes(.motion)
    package static let seamless = OpeningTypes(.seamless)
    package static let applicationSpecific = OpeningTypes(.applicationSpecific)
    package static let enhancedTap = OpeningTypes(.enhancedTap)
    package static let all: OpeningTypes = [.proximity, .motion, .seamless, .applicationSpecific, .enhancedTap]

    package func contains(_ type: OpeningType) -> Bool { rawValue & type.rawValue != 0 }

    /// In the order of `OpeningType.allCases`.
    package var types: [OpeningType] { OpeningType.allCases.filter(contains) }
}
