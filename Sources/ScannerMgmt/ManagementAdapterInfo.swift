// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// What the kernel says about an adapter. The answer to Read Controller Information: address (6), version, manufacturer
/// (2), supported settings (4), current settings (4), ... BlueZ, doc/mgmt-api.txt.
struct ManagementAdapterInfo: Equatable {
    var address: String
    var settings: UInt32

    /// nil when it was refused, or is too short.
    init?(_ status: UInt8, _ result: [UInt8]) {
        guard status == ManagementCommand.Status.success, result.count >= 17 else { return nil }
        address = DeviceAddress(result.span, at: 0, isRandom: false)?.description ?? ""
        settings = (0..<4).reduce(UInt32(0)) { $0 | UInt32(result[13 + $1]) << (8 * UInt32($1)) }
    }

    var isPowered: Bool { settings & 1 != 0 }
    /// Powered, and Low Energy is switched on.
    var isReady: Bool { isPowered && settings & 1 << 9 != 0 }

    /// The numbers in the answer to Read Controller Index List.
    static func list(_ status: UInt8, _ result: [UInt8]) -> [UInt16] {
        guard status == ManagementCommand.Status.success, result.count >= 2 else { return [] }
        return stride(from: 2, to: result.count - 1, by: 2).map { UInt16(result[$0]) | UInt16(result[$0 + 1]) << 8 }
    }
}
