// SPDX-License-Identifier: GPL-3.0-or-later
import Host

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

    package var advice: String {
        switch self {
        case .software: "rfkill unblock bluetooth"
        case .hardware: "switch Bluetooth on with the switch or key of the computer"
        }
    }
}
