// SPDX-License-Identifier: GPL-3.0-or-later

/// The advertising reports of the Host Controller Interface. Bluetooth Core, Vol 4, Part E.
package enum HCIEvent {
    /// LE Meta event, 7.7.65.
    package static let leMeta: UInt8 = 0x3E
    /// LE Advertising Report, 7.7.65.2.
    package static let advertisingReport: UInt8 = 0x02
    /// LE Extended Advertising Report, 7.7.65.13.
    package static let extendedAdvertisingReport: UInt8 = 0x0D

    /// Calls `body` for each report of an event (event code, length, parameters) with the range of its data in `event`.
    /// Events of other kinds contain no reports.
    /// - Returns: false when the event is shorter than its length fields say; `body` is called for the reports before.
    @discardableResult
    package static func forEachReport(
        in event: Span<UInt8>,
        _ body: (AdvertisingReport, _ data: Range<Int>) -> Void
    ) -> Bool {
        guard event.count >= 2 else { return false }
        let end = 2 + Int(event[1])
        guard end <= event.count else { return false }
        guard event[0] == leMeta, end >= 4 else { return event[0] != leMeta }
        let isExtended: Bool
        switch event[2] {
        case advertisingReport: isExtended = false
        case extendedAdvertisingReport: isExtended = true
        default: return true
        }
        var position = 4
        for _ in 0..<event[3] {
            let size = isExtended ? extended(event, position, end, body) : legacy(event, position, end, body)
            guard let size else { return false }
            position += size
        }
        return true
    }

    /// Reads event type, address type, address, length, data and RSSI; returns the size of the report.
    private static func legacy(
        _ event: Span<UInt8>,
        _ start: Int,
        _ end: Int,
        _ body: (AdvertisingReport, Range<Int>) -> Void
    ) -> Int? {
        guard start + 10 <= end else { return nil }
        let length = Int(event[start + 8])
        guard start + 10 + length <= end,
            let address = DeviceAddress(event, at: start + 2, isRandom: isRandom(event[start + 1]))
        else { return nil }
        let type = event[start]
        let report = AdvertisingReport(
            address: address,
            rssi: Int8(bitPattern: event[start + 9 + length]),
            isScanResponse: type == 4,
            isConnectable: type <= 1
        )
        body(report, start + 9..<start + 9 + length)
        return 10 + length
    }

    /// Reads event type (2 bytes), address type, address, two PHYs, SID, TX power, RSSI, interval (2), direct address
    /// with its type (7), length and data. Returns the size of the report.
    private static func extended(
        _ event: Span<UInt8>,
        _ start: Int,
        _ end: Int,
        _ body: (AdvertisingReport, Range<Int>) -> Void
    ) -> Int? {
        guard start + 24 <= end else { return nil }
        let length = Int(event[start + 23])
        guard start + 24 + length <= end,
            let address = DeviceAddress(event, at: start + 3, isRandom: isRandom(event[start + 2]))
        else { return nil }
        let type = event[start]
        let report = AdvertisingReport(
            address: address,
            rssi: Int8(bitPattern: event[start + 13]),
            txPower: AdvertisingReport.valid(Int8(bitPattern: event[start + 12])),
            isScanResponse: type & 0x08 != 0,
            isConnectable: type & 0x01 != 0,
            advertisingSet: type & 0x10 == 0 ? event[start + 11] : nil,
            part: type & 0x60 == 0 ? .whole : type & 0x60 == 0x20 ? .more : .cut
        )
        body(report, start + 24..<start + 24 + length)
        return 24 + length
    }

    /// 0 and 2 are public addresses, 1 and 3 random ones; 2 and 3 were resolved by the controller.
    private static func isRandom(_ type: UInt8) -> Bool { type & 1 == 1 }

    /// Encodes a report as a controller does: as a legacy report where the data fits into 31 bytes, else as an extended
    /// one. Data is cut to 229 bytes.
    package static func event(_ report: AdvertisingReport, data: [UInt8]) -> [UInt8] {
        let addressType: UInt8 = report.address.isRandom ? 1 : 0
        let rssi = UInt8(bitPattern: report.rssi ?? 127)
        var body: [UInt8]
        if data.count <= 31, report.txPower == nil, report.part == .whole {
            let type: UInt8 = report.isScanResponse ? 4 : report.isConnectable ? 0 : 3
            body = [advertisingReport, 1, type, addressType] + report.address.bytes + [UInt8(data.count)]
            body += data
            body.append(rssi)
        } else {
            let data = data.prefix(229)
            var type: UInt8 = report.isConnectable ? 1 : 0
            if report.isScanResponse { type |= 0x08 }
            if report.advertisingSet == nil, data.count <= 31 { type |= 0x10 }
            switch report.part {
            case .whole: break
            case .more: type |= 0x20
            case .cut: type |= 0x40
            }
            body = [extendedAdvertisingReport, 1, type, 0, addressType] + report.address.bytes
            body += [
                1, 0, report.advertisingSet ?? 0xFF, UInt8(bitPattern: report.txPower ?? 127), rssi, 0, 0, 0, 0, 0, 0,
                0, 0, 0,
            ]
            body.append(UInt8(data.count))
            body += data
        }
        return [leMeta, UInt8(body.count)] + body
    }
}
