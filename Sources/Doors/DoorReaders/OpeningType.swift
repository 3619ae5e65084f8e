// SPDX-License-Identifier: GPL-3.0-or-later

/// How a person opens a door with a phone. The raw values are the bits of the mask that Seos-style readers advertise.
package enum OpeningType: UInt8, Sendable, CaseIterable {
    /// The person holds the phone to the reader.
    case proximity = 0x01
    /// The person turns the phone ("twist and go").
    case motion = 0x02
    /// The person does nothing with the phone.
    case seamless = 0x04
    /// The application decides when to open.
    case applicationSpecific = 0x08
    /// Like `proximity`, but the reader connects to the phone.
    case enhancedTap = 0x40

    /// The name in messages.
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
}

/// A set of opening types.
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
