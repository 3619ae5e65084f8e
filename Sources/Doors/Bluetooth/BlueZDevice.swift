// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
package import Text

/// A device of bluetoothd: org.bluez.Device1. bluetoothd provides decoded properties instead of advertising data, so
/// the data is encoded again from the properties.
package struct BlueZDevice {
    package var address: String?
    /// nil until bluetoothd has reported the type of the address.
    package var isRandom: Bool?
    package var isConnected = false
    package var rssi: Int16?
    private var name: String?
    private var txPower: Int16?
    private var uuids: [String] = []
    private var serviceData: [(uuid: String, data: [UInt8])] = []
    private var manufacturerData: [(company: UInt16, data: [UInt8])] = []
    /// The properties, encoded as advertising data.
    package private(set) var advertisingData: [UInt8] = []

    /// Limits on the entries of a list and on the bytes of an entry; the rest is dropped.
    private static let maximumEntries = 32
    private static let maximumBytes = 255

    package init() {}

    private static let types = [
        "Address": "s", "AddressType": "s", "RSSI": "n", "TxPower": "n", "Name": "s", "UUIDs": "as", "Connected": "b",
        "ManufacturerData": "a{qv}", "ServiceData": "a{sv}",
    ]

    /// Reads an `a{sv}`. Properties that the message does not contain stay, except for the signal strength.
    package mutating func read(_ message: BusMessage) throws(Malformed) {
        rssi = nil
        var copy = self
        var hasNewData = false
        var properties = try BusProperties(message, Self.types)
        while let key = try properties.next() {
            switch key {
            case "Address": copy.address = try message.string()
            case "AddressType": copy.isRandom = try message.string() == "random"
            case "RSSI": copy.rssi = try message.number("n", as: Int16.self)
            case "Connected": copy.isConnected = try message.bool()
            case "TxPower":
                copy.txPower = try message.number("n", as: Int16.self)
                hasNewData = true
            case "Name":
                copy.name = try message.string()
                hasNewData = true
            case "UUIDs":
                copy.uuids = try message.strings(maximum: Self.maximumEntries)
                hasNewData = true
            case "ManufacturerData":
                copy.manufacturerData = []
                var entries = try BusEntries(message, "qv")
                while try entries.next() {
                    let company = try message.number("q", as: UInt16.self)
                    guard let data = try Self.data(message) else { continue }
                    if copy.manufacturerData.count < Self.maximumEntries {
                        copy.manufacturerData.append((company, data))
                    }
                }
                hasNewData = true
            case "ServiceData":
                copy.serviceData = []
                var entries = try BusEntries(message, "sv")
                while try entries.next() {
                    let uuid = try message.string()
                    guard let data = try Self.data(message) else { continue }
                    if copy.serviceData.count < Self.maximumEntries { copy.serviceData.append((uuid, data)) }
                }
                hasNewData = true
            default: break
            }
        }
        self = copy
        if hasNewData { advertisingData = dataOfProperties }
    }

    /// Reads the bytes in a variant; nil when the variant has another type.
    private static func data(_ message: BusMessage) throws(Malformed) -> [UInt8]? {
        guard try message.variantType() == "ay" else {
            try message.skip("v")
            return nil
        }
        return Array(try message.variant("ay", message.bytes()).prefix(maximumBytes))
    }

    // MARK: Advertising data

    private typealias DataType = AdvertisingData.DataType

    private var dataOfProperties: [UInt8] {
        var data: [UInt8] = []
        for uuid in uuids {
            guard let bytes = Self.bytes(uuid) else { continue }
            AdvertisingData.append(
                bytes.count == 2 ? DataType.completeUUIDs16 : DataType.completeUUIDs128,
                bytes,
                to: &data
            )
        }
        for entry in serviceData {
            guard let bytes = Self.bytes(entry.uuid) else { continue }
            let type = bytes.count == 2 ? DataType.serviceData16 : DataType.serviceData128
            AdvertisingData.append(type, bytes + entry.data, to: &data)
        }
        for entry in manufacturerData {
            let company = [UInt8(truncatingIfNeeded: entry.company), UInt8(truncatingIfNeeded: entry.company >> 8)]
            AdvertisingData.append(DataType.manufacturerData, company + entry.data, to: &data)
        }
        if let name { AdvertisingData.append(DataType.completeName, Array(name.utf8), to: &data) }
        if let txPower {
            AdvertisingData.append(DataType.txPower, [UInt8(bitPattern: Int8(clamping: txPower))], to: &data)
        }
        return data
    }

    /// The bytes of a UUID in advertising data: two for a 16-bit UUID, else sixteen; nil when the text is no UUID.
    static func bytes(_ uuid: String) -> [UInt8]? {
        guard uuid.utf8.count == 36, let bytes = UUIDText.decode(uuid) else { return nil }
        // A 16-bit UUID completes the Bluetooth Base UUID.
        let isShort = bytes[..<2] == [0, 0] && bytes[4...].elementsEqual(base)
        return isShort ? [bytes[3], bytes[2]] : bytes.reversed()
    }

    private static let base = [0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0x80, 0x5F, 0x9B, 0x34, 0xFB] as [UInt8]
}
