// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host

/// The places that name devices of libnfc: badged's configuration, libnfc's configuration and environment, and USB.
enum DeviceSources {
    /// Whether libnfc could find a device. A CCID reader counts only when it is configured, because pcscd uses it.
    static func mayHaveDevice(configured devices: [String]) -> Bool {
        if !devices.isEmpty || libnfcNamesDevice() { return true }
        let variables = ["LIBNFC_DEVICE", "LIBNFC_DEFAULT_DEVICE", "LIBNFC_INTRUSIVE_SCAN"]
        if variables.contains(where: { (name: String) in getenv(name) != nil }) { return true }
        return USBDevice.connected().contains { !$0.isCCID }
    }

    /// Whether libnfc's configuration names a device or lets libnfc probe serial lines.
    static func libnfcNamesDevice(folder: String = "/etc/nfc") -> Bool {
        let files = Sysfs.names(in: "\(folder)/devices.d").filter { $0.hasSuffix(".conf") }.map { "devices.d/\($0)" }
        return (["libnfc.conf"] + files).contains { file in
            lines(of: "\(folder)/\(file)").contains { $0.hasPrefix("device.") || $0.hasPrefix("allow_intrusive_scan") }
        }
    }

    /// The lines of a file without leading spaces. Reads at most 64 KiB.
    private static func lines(of path: String) -> [Substring] {
        guard let file = fopen(path, "re") else { return [] }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = fread(&buffer, 1, buffer.count, file)
        let text = String(decoding: buffer.prefix(count), as: UTF8.self)
        return text.split(separator: "\n").map { $0.drop { $0 == " " || $0 == "\t" } }
    }
}
