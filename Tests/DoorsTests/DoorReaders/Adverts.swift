// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// Advertising data of readers and beacons.
enum Adverts {
    static func structure(_ type: UInt8, _ value: [UInt8]) -> [UInt8] {
        var data: [UInt8] = []
        AdvertisingData.append(type, value, to: &data)
        return data
    }

    /// Service 00009800-0000-1000-8000-00177A and the code in binary.
    static func seos(_ code: UInt32 = 2, name: String? = nil) -> [UInt8] {
        let low = (0..<3).map { UInt8(truncatingIfNeeded: code >> (8 * $0)) }
        let uuid: [UInt8] = low + [0x7A, 0x17, 0x00, 0x00, 0x80, 0x00, 0x10, 0x00, 0x00, 0x00, 0x98, 0x00, 0x00]
        return structure(0x01, [0x06]) + structure(0x07, uuid) + (name.map { structure(0x09, Array($0.utf8)) } ?? [])
    }

    /// The manufacturer data of a scan response; limits in the order seamless, proximity, motion, enhanced tap.
    static func seosCompany(mask: UInt8, limits: [Int8], trigger: [UInt8] = []) -> [UInt8] {
        let head: [UInt8] = [0x2E, 0x01, 0x01, 0x2E, 0x10 | UInt8(trigger.count)]
        return structure(0xFF, head + trigger + [0x01, mask] + limits.map { UInt8(bitPattern: $0) })
    }

    static func aliro(group: UInt8, subGroup: UInt8) -> [UInt8] {
        let groupID = [UInt8](repeating: group, count: 8)
        let value: [UInt8] = [0xF2, 0xFF, 0x00, 0x08] + groupID + [0, subGroup] + [UInt8](repeating: 0xEE, count: 12)
        return structure(0x16, value)
    }

    static func ibeacon(_ uuid: [UInt8], power: Int8 = -59) -> [UInt8] {
        structure(0xFF, [0x4C, 0x00, 0x02, 0x15] + uuid + [0, 1, 0, 2, UInt8(bitPattern: power)])
    }
}

extension ReaderTracker {
    func receive(
        _ data: [UInt8],
        from address: DeviceAddress,
        _ rssi: Int8?,
        adapter: Int = 0,
        isScanResponse: Bool = false,
        at now: Milliseconds
    ) {
        let report = AdvertisingReport(address: address, rssi: rssi, isScanResponse: isScanResponse)
        receive(report, data.span, adapter: adapter, at: now)
    }

    /// Receives ten samples per second from `start` to `end`, both included.
    func receive(
        _ data: [UInt8],
        from address: DeviceAddress,
        _ rssi: Int8,
        from start: Milliseconds,
        to end: Milliseconds
    ) {
        for now in stride(from: start, through: end, by: 100) { receive(data, from: address, rssi, at: now) }
    }
}

extension DeviceAddress {
    /// A static random address.
    static func door(_ number: UInt64) -> DeviceAddress {
        DeviceAddress(bits: 0xC000_0000_0000 | number, isRandom: true)
    }
    /// A resolvable random address.
    static func passing(_ number: UInt64) -> DeviceAddress {
        DeviceAddress(bits: 0x4000_0000_0000 | number, isRandom: true)
    }
}
