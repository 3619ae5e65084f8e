// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The Bluetooth adapters of the host, as sysfs shows them to everybody.
package enum HostAdapters {
    package static func areThere(folder: String = "/sys/class/bluetooth") -> Bool {
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
