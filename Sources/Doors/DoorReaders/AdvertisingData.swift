// SPDX-License-Identifier: GPL-3.0-or-later

/// Advertising data: a row of AD structures, each a length, a type and so many bytes less one. Bluetooth Core, Vol 3,
/// Part C, 11; the types are those of the Assigned Numbers, 2.3.
package enum AdvertisingData {
    package enum DataType {
        package static let flags: UInt8 = 0x01
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

    /// Longest data of one advertisement, fragments put together. Vol 4, Part E, 7.8.54.
    package static let maximumLength = 1650

    /// Gives each structure to `body`: its type, and where its value lies in `data`.
    /// - Returns: false when the last structure says that it is longer than the data; it is not given out.
    @discardableResult
    package static func forEach(in data: Span<UInt8>, _ body: (_ type: UInt8, _ value: Range<Int>) -> Void) -> Bool {
        var position = 0
        let end = min(data.count, maximumLength)
        while position < end {
            let length = Int(data[position])
            // A length of zero ends the data early; the rest is padding.
            guard length > 0 else { return true }
            guard position + 1 + length <= end else { return false }
            body(data[position + 1], position + 2..<position + 1 + length)
            position += 1 + length
        }
        return true
    }

    /// Writes one structure; a value longer than its length byte can say is cut.
    package static func append(_ type: UInt8, _ value: some Collection<UInt8>, to data: inout [UInt8]) {
        let value = value.prefix(254)
        data.append(UInt8(value.count + 1))
        data.append(type)
        data.append(contentsOf: value)
    }
}
