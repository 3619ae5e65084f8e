// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
package import Text

/// The Bluetooth adapters of the host in sysfs, which every user may read.
package enum HostAdapters {
    package static let folder = "/sys/class/bluetooth"

    /// Whether an adapter such as `hci0` exists.
    package static func exists(_ name: String) -> Bool { access("\(folder)/\(name)", F_OK) == 0 }

    /// Whether any adapter exists. Entries such as `hci0:64` are connections.
    package static func anyExists(folder: String = folder) -> Bool {
        Sysfs.names(in: folder).contains { $0.hasPrefix("hci") && !$0.contains(":") }
    }
}

/// What blocks the Bluetooth of the host: a program or a hardware switch. The kernel's rfkill, by sysfs.
package enum RFKill: Sendable {
    case software, hardware

    /// nil: Bluetooth is not blocked.
    package static func bluetooth(folder: String = "/sys/class/rfkill") -> RFKill? {
        let switches = Sysfs.names(in: folder).map { "\(folder)/\($0)" }.filter {
            Sysfs.line("\($0)/type") == "bluetooth"
        }
        if switches.contains(where: { Sysfs.line("\($0)/hard") == "1" }) { return .hardware }
        return switches.contains { Sysfs.line("\($0)/soft") == "1" } ? .software : nil
    }

    package var advice: Phrase {
        switch self {
        case .software: "rfkill unblock bluetooth"
        case .hardware: "switch Bluetooth on with the switch or key of the computer"
        }
    }
}
