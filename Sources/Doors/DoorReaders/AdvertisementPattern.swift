// SPDX-License-Identifier: GPL-3.0-or-later

/// Bytes at an offset in an AD structure, by which the system or the controller filters advertisements.
package struct AdvertisementPattern: Sendable, Equatable {
    package var type: UInt8
    /// Offset in the value of the structure.
    package var start: UInt8
    /// At most 31 bytes.
    package var content: [UInt8]

    private typealias DataType = AdvertisingData.DataType

    /// The patterns of all door profiles. A pattern matches a service UUID only at the start of a list of UUIDs.
    /// `AdvertisementDecoder` has no such limit.
    package static let doors: [AdvertisementPattern] = {
        // The Seos service without its lowest 24 bits, which hold the lock service code.
        let seos: [UInt8] = [0x7A, 0x17, 0x00, 0x00, 0x80, 0x00, 0x10, 0x00, 0x00, 0x00, 0x98, 0x00, 0x00]
        let pkoc: [UInt8] = [
            0x10, 0x18, 0xE8, 0x5A, 0x2B, 0xB6, 0xBB, 0x8C, 0xE9, 0x4A, 0xD0, 0xD4, 0xA1, 0x60, 0xFB, 0x41,
        ]
        return [
            AdvertisementPattern(type: DataType.completeUUIDs128, start: 3, content: seos),
            AdvertisementPattern(type: DataType.incompleteUUIDs128, start: 3, content: seos),
            AdvertisementPattern(type: DataType.manufacturerData, start: 0, content: [0x2E, 0x01]),
            AdvertisementPattern(type: DataType.completeUUIDs128, start: 0, content: pkoc),
            AdvertisementPattern(type: DataType.completeUUIDs16, start: 0, content: [0xF0, 0xFF]),
            AdvertisementPattern(type: DataType.incompleteUUIDs16, start: 0, content: [0xF0, 0xFF]),
            AdvertisementPattern(type: DataType.serviceData16, start: 0, content: [0xF0, 0xFF]),
            AdvertisementPattern(type: DataType.serviceData16, start: 0, content: [0xF2, 0xFF]),
            AdvertisementPattern(type: DataType.completeUUIDs16, start: 0, content: [0xF5, 0xFF]),
            AdvertisementPattern(type: DataType.incompleteUUIDs16, start: 0, content: [0xF5, 0xFF]),
            AdvertisementPattern(type: DataType.serviceData16, start: 0, content: [0xF5, 0xFF]),
        ]
    }()

    package static let beacons: [AdvertisementPattern] = [
        AdvertisementPattern(type: DataType.manufacturerData, start: 0, content: [0x4C, 0x00, 0x02, 0x15]),
        AdvertisementPattern(type: DataType.serviceData16, start: 0, content: [0xAA, 0xFE]),
    ]

    /// The patterns of these profiles; those of door readers are always included.
    package static func patterns(for profiles: Set<ReaderProfile>) -> [AdvertisementPattern] {
        doors + (profiles.isSubset(of: ReaderProfile.doors) ? [] : beacons)
    }
}
