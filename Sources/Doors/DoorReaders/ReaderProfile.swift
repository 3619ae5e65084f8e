// SPDX-License-Identifier: GPL-3.0-or-later

/// The kind of a sender, by its advertising data, in order of precedence when several match. Anybody can send such
/// data.
package enum ReaderProfile: String, Sendable, CaseIterable {
    /// A reader in the manner of HID Seos and ASSA ABLOY: service 00009800-0000-1000-8000-00177Axxxxxx or company
    /// 0x012E.
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

    /// The profiles of door readers, without beacons.
    package static let doors: Set<ReaderProfile> = [.seos, .pkoc, .aliro, .ccc]

    /// The opening types of a reader that advertises none.
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
