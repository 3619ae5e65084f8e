// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

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
