// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Whether Bluetooth is switched off for the whole host, by a switch or by a program. The kernel's rfkill, as sysfs
/// shows it.
package enum RFKill: Sendable {
    case software, hardware

    /// nil: not blocked, as far as can be seen.
    package static func bluetooth(folder: String = "/sys/class/rfkill") -> RFKill? {
        guard let directory = opendir(folder) else { return nil }
        defer { closedir(directory) }
        var result: RFKill?
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasPrefix("rfkill"), word("\(folder)/\(name)/type") == "bluetooth" else { continue }
            if word("\(folder)/\(name)/hard") == "1" { return .hardware }
            if word("\(folder)/\(name)/soft") == "1" { result = .software }
        }
        return result
    }

    private static func word(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = read(file, &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].prefix { $0 > 0x20 }, as: UTF8.self)
    }

    package var advice: String {
        switch self {
        case .software: "rfkill unblock bluetooth"
        case .hardware: "switch Bluetooth on with the switch or key of the computer"
        }
    }
}
