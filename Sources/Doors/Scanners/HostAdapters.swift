// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host

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
