// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// A USB device that libnfc can drive, as the kernel describes it.
package struct USBDevice: Sendable, Equatable {
    /// The kernel's numbers of the bus and the device.
    package let bus: Int
    package let number: Int
    package let vendor: UInt16
    package let product: UInt16
    /// Manufacturer and product strings of the device. Can be empty.
    package let name: String
    /// Whether the device has a CCID interface. pcscd uses such a device.
    package let isCCID: Bool
    /// The kernel driver that is bound to an interface; `usbfs` means that a program has opened the device.
    package let driver: String?

    package var node: String { "/dev/bus/usb/\(bus.padded(to: 3))/\(number.padded(to: 3))" }
    package var identity: String { "\(Hex.encode(vendor)):\(Hex.encode(product))" + (name.isEmpty ? "" : " (\(name))") }

    /// PN531, PN533 and their relatives, and PN532 behind an ACS controller. udev/94-badged.rules has the same list.
    static let known: [(vendor: UInt16, product: UInt16)] = [
        (0x04CC, 0x0531), (0x054C, 0x0193), (0x04CC, 0x2533), (0x04E6, 0x5591), (0x04E6, 0x5594), (0x1FD3, 0x0608),
        (0x054C, 0x02E1), (0x072F, 0x2200), (0x072F, 0x90CC),
    ]

    /// The connected devices of `known`. `root` is the folder in which the kernel lists USB devices and interfaces.
    package static func connected(root: String = "/sys/bus/usb/devices") -> [USBDevice] {
        let names = Sysfs.names(in: root).sorted()
        return names.compactMap { name in
            guard !name.contains(":"),
                let vendor = Sysfs.line(root, name, "idVendor").flatMap({ UInt16($0, radix: 16) }),
                let product = Sysfs.line(root, name, "idProduct").flatMap({ UInt16($0, radix: 16) }),
                known.contains(where: { $0 == (vendor, product) }),
                let bus = Sysfs.line(root, name, "busnum").flatMap({ Int($0) }),
                let number = Sysfs.line(root, name, "devnum").flatMap({ Int($0) })
            else { return nil }
            // The kernel names interfaces DEVICE:CONFIGURATION.INTERFACE.
            let interfaces = names.filter { $0.hasPrefix(name + ":") }
            let words = [Sysfs.line(root, name, "manufacturer"), Sysfs.line(root, name, "product")].compactMap { $0 }
            return USBDevice(
                bus: bus,
                number: number,
                vendor: vendor,
                product: product,
                name: words.joined(separator: " "),
                isCCID: interfaces.contains { Sysfs.line(root, $0, "bInterfaceClass") == "0b" },
                driver: interfaces.lazy.compactMap { Sysfs.link(root, $0, "driver") }.first
            )
        }
    }
}

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
