// SPDX-License-Identifier: GPL-3.0-or-later
package import DoorReaders

/// An event from the management socket. The header has the code, the index of the adapter and the length of the
/// parameters, 2 bytes each. Numbers are little-endian. BlueZ, doc/mgmt-api.txt.
package enum ManagementEvent: Equatable, Sendable {
    /// The answer to a command; `status` 0 means success.
    case answer(command: UInt16, adapter: UInt16, status: UInt8, result: [UInt8])
    case indexAdded(UInt16)
    case indexRemoved(UInt16)
    case newSettings(adapter: UInt16, settings: UInt32)
    /// An advertisement; `data` is the range of its data in the packet.
    case deviceFound(adapter: UInt16, AdvertisingReport, data: Range<Int>)
    /// A device is connected, whoever asked for it.
    case connected(adapter: UInt16, DeviceAddress)
    /// A handle of 0 means all monitors.
    case monitorRemoved(adapter: UInt16, handle: UInt16)
    case suspended(adapter: UInt16)
    case resumed(adapter: UInt16)
    case other

    private enum Code {
        static let commandComplete: UInt16 = 0x0001
        static let commandStatus: UInt16 = 0x0002
        static let indexAdded: UInt16 = 0x0004
        static let indexRemoved: UInt16 = 0x0005
        static let newSettings: UInt16 = 0x0006
        static let deviceConnected: UInt16 = 0x000B
        static let deviceFound: UInt16 = 0x0012
        static let monitorRemoved: UInt16 = 0x002C
        static let suspend: UInt16 = 0x002D
        static let resume: UInt16 = 0x002E
        static let monitorDeviceFound: UInt16 = 0x002F
    }

    private static func uint16(_ packet: Span<UInt8>, _ start: Int) -> UInt16 {
        UInt16(packet[start]) | UInt16(packet[start + 1]) << 8
    }

    private static func uint32(_ packet: Span<UInt8>, _ start: Int) -> UInt32 {
        UInt32(uint16(packet, start)) | UInt32(uint16(packet, start + 2)) << 16
    }

    /// The result of a command is cut to this number of bytes.
    private static let longestResult = 512
    private static let header = 6

    /// Decodes a packet; nil when it is shorter than its header says or than its code requires.
    package init?(_ packet: Span<UInt8>) {
        guard packet.count >= Self.header else { return nil }
        let (code, adapter) = (Self.uint16(packet, 0), Self.uint16(packet, 2))
        let length = Int(Self.uint16(packet, 4))
        guard length == packet.count - Self.header else { return nil }
        func has(_ count: Int) -> Bool { length >= count }
        switch code {
        case Code.commandComplete, Code.commandStatus:
            guard has(3) else { return nil }
            var result: [UInt8] = []
            for index in (Self.header + 3..<packet.count).prefix(Self.longestResult) { result.append(packet[index]) }
            let command = Self.uint16(packet, Self.header)
            self = .answer(command: command, adapter: adapter, status: packet[Self.header + 2], result: result)
        case Code.indexAdded: self = .indexAdded(adapter)
        case Code.indexRemoved: self = .indexRemoved(adapter)
        case Code.newSettings:
            guard has(4) else { return nil }
            self = .newSettings(adapter: adapter, settings: Self.uint32(packet, Self.header))
        case Code.deviceConnected:
            guard has(7),
                let address = DeviceAddress(packet, at: Self.header, isRandom: packet[Self.header + 6] == 2)
            else { return nil }
            self = .connected(adapter: adapter, address)
        case Code.deviceFound:
            guard let found = Self.found(packet, Self.header) else { return nil }
            self = .deviceFound(adapter: adapter, found.0, data: found.1)
        case Code.monitorDeviceFound:
            // The parameters begin with the handle of the monitor.
            guard has(2), let found = Self.found(packet, Self.header + 2) else { return nil }
            self = .deviceFound(adapter: adapter, found.0, data: found.1)
        case Code.monitorRemoved:
            guard has(2) else { return nil }
            self = .monitorRemoved(adapter: adapter, handle: Self.uint16(packet, Self.header))
        case Code.suspend: self = .suspended(adapter: adapter)
        case Code.resume: self = .resumed(adapter: adapter)
        default: self = .other
        }
    }

    /// Reads address, address type (1 LE public, 2 LE random), RSSI, flags (4), length (2) and data.
    private static func found(_ packet: Span<UInt8>, _ start: Int) -> (AdvertisingReport, Range<Int>)? {
        guard start + 14 <= packet.count else { return nil }
        let length = Int(uint16(packet, start + 12))
        guard start + 14 + length <= packet.count,
            let address = DeviceAddress(packet, at: start, isRandom: packet[start + 6] == 2)
        else { return nil }
        // Flag 2: not connectable; flag 5: a scan response alone. Otherwise the data may contain an advertisement and
        // its scan response.
        let report = AdvertisingReport(
            address: address,
            rssi: Int8(bitPattern: packet[start + 7]),
            isScanResponse: packet[start + 8] & 0x20 != 0,
            isConnectable: packet[start + 8] & 0x04 == 0
        )
        return (report, start + 14..<start + 14 + length)
    }
}

/// The current settings of an adapter, a bit mask of 4 bytes. BlueZ, doc/mgmt-api.txt.
struct ManagementSettings: Equatable {
    var mask: UInt32

    init(mask: UInt32) { self.mask = mask }

    /// Reads the first 4 bytes; nil when there are fewer.
    init?(_ bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes.prefix(4))
        guard bytes.count == 4 else { return nil }
        mask = bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    var isPowered: Bool { mask & 1 << 0 != 0 }
    var hasLowEnergy: Bool { mask & 1 << 9 != 0 }
}

/// The answer to Get PHY Configuration: supported, configurable and selected PHYs, bit masks of 4 bytes each. BlueZ,
/// doc/mgmt-api.txt.
struct PHYs: Equatable {
    let supported: UInt32
    let selected: UInt32

    /// Sending and receiving on the coded PHY.
    private static let coded: UInt32 = 1 << 13 | 1 << 14

    init?(_ result: [UInt8]) {
        guard result.count >= 12, let supported = ManagementSettings(result)?.mask,
            let selected = ManagementSettings(result.dropFirst(8))?.mask
        else { return nil }
        self.supported = supported
        self.selected = selected
    }

    var hasCoded: Bool { supported & Self.coded == Self.coded }
    var isCodedSelected: Bool { selected & Self.coded == Self.coded }
    var withCoded: UInt32 { selected | Self.coded }
}

/// The answer to Read Controller Information: address (6), version, manufacturer (2), supported settings (4), current
/// settings (4), ... BlueZ, doc/mgmt-api.txt.
struct ManagementAdapterInfo: Equatable {
    var address: String
    var settings: ManagementSettings

    /// nil when the command was refused or the answer is too short.
    init?(_ status: UInt8, _ result: [UInt8]) {
        guard status == ManagementCommand.Status.success, result.count >= 17,
            let settings = ManagementSettings(result.dropFirst(13))
        else { return nil }
        address = DeviceAddress(result.span, at: 0, isRandom: false)?.description ?? ""
        self.settings = settings
    }

    /// The adapter can scan.
    var isReady: Bool { settings.isPowered && settings.hasLowEnergy }

    /// The numbers in the answer to Read Controller Index List; nil when the command was refused.
    static func list(_ status: UInt8, _ result: [UInt8]) -> [UInt16]? {
        guard status == ManagementCommand.Status.success, result.count >= 2 else { return nil }
        return stride(from: 2, to: result.count - 1, by: 2).map { UInt16(result[$0]) | UInt16(result[$0 + 1]) << 8 }
    }
}
