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
        guard let settings = Self.settings(result.dropFirst(13)) else { return nil }
        self.settings = settings
    }

    /// Current settings, 4 bytes. So the answer to Set Powered begins, too.
    static func settings(_ bytes: some Sequence<UInt8>) -> UInt32? {
        let bytes = Array(bytes.prefix(4))
        guard bytes.count == 4 else { return nil }
        return bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
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
