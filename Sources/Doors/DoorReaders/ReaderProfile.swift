// SPDX-License-Identifier: GPL-3.0-or-later

/// What kind of thing advertises, as its advertising data says. Nothing of this is proof: anybody can send it.
package enum ReaderProfile: String, Sendable, CaseIterable {
    /// A reader in the manner of HID Seos and ASSA ABLOY: service 00009800-0000-1000-8000-00177Axxxxxx or company 0x012E.
    case seos
    /// Public Key Open Credential of the Physical Security Interoperability Alliance: service 0xFFF0, or the older
    /// 41fb60a1-d4d0-4ae9-8cbb-b62b5ae81810.
    case pkoc
    /// Aliro of the Connectivity Standards Alliance: service data 0xFFF2.
    case aliro
    /// Digital Key of the Car Connectivity Consortium: service 0xFFF5.
    case ccc
    /// Apple's beacon: company 0x004C, type 0x02.
    case ibeacon
    /// Google's beacon: service data 0xFEAA.
    case eddystone

    /// Those that belong to doors; a beacon marks a place.
    package static let doors: Set<ReaderProfile> = [.seos, .pkoc, .aliro, .ccc]

    /// How it is opened, where it does not say so itself.
    package var usualOpeningTypes: OpeningTypes {
        switch self {
        case .seos: [.proximity, .motion]
        case .pkoc: [.proximity]
        case .aliro: [.proximity, .seamless]
        case .ccc: [.seamless]
        case .ibeacon, .eddystone: []
        }
    }
}
