// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// A command on the management socket. BlueZ, doc/mgmt-api.txt.
package struct ManagementCommand: Equatable, Sendable {
    package var code: UInt16
    /// 0xFFFF for a command that concerns no adapter.
    package var adapter: UInt16
    package var parameters: [UInt8] = []

    package enum Code {
        package static let readIndexList: UInt16 = 0x0003
        package static let readInfo: UInt16 = 0x0004
        package static let setPowered: UInt16 = 0x0005
        package static let getConnections: UInt16 = 0x0015
        package static let startDiscovery: UInt16 = 0x0023
        package static let stopDiscovery: UInt16 = 0x0024
        package static let addDevice: UInt16 = 0x0033
        package static let removeDevice: UInt16 = 0x0034
        package static let getPHY: UInt16 = 0x0044
        package static let setPHY: UInt16 = 0x0045
        package static let addPatternsMonitor: UInt16 = 0x0052
        package static let removeMonitor: UInt16 = 0x0053
    }

    package enum Status {
        package static let success: UInt8 = 0x00
        package static let unknownCommand: UInt8 = 0x01
        package static let noResources: UInt8 = 0x07
        package static let timeout: UInt8 = 0x08
        package static let busy: UInt8 = 0x0A
        package static let notSupported: UInt8 = 0x0C
        package static let invalidIndex: UInt8 = 0x11
        package static let blocked: UInt8 = 0x12
        package static let permissionDenied: UInt8 = 0x14
    }

    /// Address types of a discovery: LE public and LE random.
    private static let lowEnergy: UInt8 = 0x06
    private static let noAdapter: UInt16 = 0xFFFF
    /// The kernel accepts at most this number of patterns in one monitor.
    private static let maximumPatterns = 16

    /// Without its answer the scan does not go on.
    var needsAnswer: Bool {
        [Code.readIndexList, Code.readInfo, Code.startDiscovery, Code.addPatternsMonitor].contains(code)
    }

    static let readIndexList = ManagementCommand(code: Code.readIndexList, adapter: noAdapter)

    static func readInfo(_ adapter: UInt16) -> ManagementCommand {
        ManagementCommand(code: Code.readInfo, adapter: adapter)
    }

    static func setPowered(_ adapter: UInt16, _ value: Bool) -> ManagementCommand {
        ManagementCommand(code: Code.setPowered, adapter: adapter, parameters: [value ? 1 : 0])
    }

    static func getConnections(_ adapter: UInt16) -> ManagementCommand {
        ManagementCommand(code: Code.getConnections, adapter: adapter)
    }

    static func startDiscovery(_ adapter: UInt16) -> ManagementCommand {
        ManagementCommand(code: Code.startDiscovery, adapter: adapter, parameters: [lowEnergy])
    }

    static func stopDiscovery(_ adapter: UInt16) -> ManagementCommand {
        ManagementCommand(code: Code.stopDiscovery, adapter: adapter, parameters: [lowEnergy])
    }

    /// Lets the kernel connect to the device when it advertises.
    static func addDevice(_ adapter: UInt16, _ address: DeviceAddress) -> ManagementCommand {
        ManagementCommand(code: Code.addDevice, adapter: adapter, parameters: address.managementBytes + [2])
    }

    /// Ends this; a connection stays.
    static func removeDevice(_ adapter: UInt16, _ address: DeviceAddress) -> ManagementCommand {
        ManagementCommand(code: Code.removeDevice, adapter: adapter, parameters: address.managementBytes)
    }

    static func getPHY(_ adapter: UInt16) -> ManagementCommand {
        ManagementCommand(code: Code.getPHY, adapter: adapter)
    }

    static func setPHY(_ adapter: UInt16, _ phys: UInt32) -> ManagementCommand {
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: phys >> (8 * $0)) }
        return ManagementCommand(code: Code.setPHY, adapter: adapter, parameters: bytes)
    }

    /// Each pattern has a type, an offset, a length and 31 bytes.
    static func addMonitor(_ adapter: UInt16, _ patterns: [AdvertisementPattern]) -> ManagementCommand {
        let patterns = patterns.prefix(maximumPatterns)
        var parameters = [UInt8(patterns.count)]
        for pattern in patterns {
            let content = pattern.content.prefix(31)
            parameters += [pattern.type, pattern.start, UInt8(content.count)] + content
            parameters += [UInt8](repeating: 0, count: 31 - content.count)
        }
        return ManagementCommand(code: Code.addPatternsMonitor, adapter: adapter, parameters: parameters)
    }

    static func removeMonitor(_ adapter: UInt16, handle: UInt16) -> ManagementCommand {
        ManagementCommand(
            code: Code.removeMonitor,
            adapter: adapter,
            parameters: [UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8)]
        )
    }

    package var bytes: [UInt8] {
        let numbers = [code, adapter, UInt16(truncatingIfNeeded: parameters.count)]
        return numbers.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] } + parameters
    }
}

extension DeviceAddress {
    /// Address and type: 1 is LE public, 2 LE random.
    fileprivate var managementBytes: [UInt8] { bytes + [isRandom ? 2 : 1] }
}
