// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The Bluetooth adapters of the host, as sysfs shows them to everybody.
package enum HostAdapters {
    package static let folder = "/sys/class/bluetooth"

    /// This one, such as `hci0`.
    package static func isThere(_ name: String) -> Bool { access("\(folder)/\(name)", F_OK) == 0 }

    package static func areThere(folder: String = folder) -> Bool {
        guard let directory = opendir(folder) else { return false }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            // Connections stand there, too: hci0:64.
            if name.hasPrefix("hci"), !name.contains(":") { return true }
        }
        return false
    }
}
