// SPDX-License-Identifier: GPL-3.0-or-later

/// Advertising data: a sequence of AD structures. Each has a length byte, which counts the bytes after it, a type byte
/// and a value. Bluetooth Core, Vol 3, Part C, 11; the types are in the Assigned Numbers, 2.3.
package enum AdvertisingData {
    package enum DataType {
        package static let incompleteUUIDs16: UInt8 = 0x02
        package static let completeUUIDs16: UInt8 = 0x03
        package static let incompleteUUIDs128: UInt8 = 0x06
        package static let completeUUIDs128: UInt8 = 0x07
        package static let shortenedName: UInt8 = 0x08
        package static let completeName: UInt8 = 0x09
        package static let txPower: UInt8 = 0x0A
        package static let serviceData16: UInt8 = 0x16
        package static let serviceData128: UInt8 = 0x21
        package static let manufacturerData: UInt8 = 0xFF
    }

    /// Largest size of one advertisement after reassembly, in bytes. Vol 4, Part E, 7.8.54.
    package static let maximumLength = 1650

    /// Calls `body` for each structure with its type and the range of its value in `data`.
    /// - Returns: false when the last structure extends beyond the data; `body` is not called for it.
    @discardableResult
    package static func forEach(in data: Span<UInt8>, _ body: (_ type: UInt8, _ value: Range<Int>) -> Void) -> Bool {
        var position = 0
        let end = min(data.count, maximumLength)
        while position < end {
            let length = Int(data[position])
            // A length of zero means that the rest is padding.
            guard length > 0 else { return true }
            guard position + 1 + length <= end else { return false }
            body(data[position + 1], position + 2..<position + 1 + length)
            position += 1 + length
        }
        return true
    }

    /// Appends one structure. A value is cut to the 254 bytes that the length byte allows.
    package static func append(_ type: UInt8, _ value: some Collection<UInt8>, to data: inout [UInt8]) {
        let value = value.prefix(254)
        data.append(UInt8(value.count + 1))
        data.append(type)
        data.append(contentsOf: value)
    }
}
