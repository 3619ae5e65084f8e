// SPDX-License-Identifier: GPL-3.0-or-later
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

    package var node: String { "/dev/bus/usb/\(Self.digits(bus))/\(Self.digits(number))" }
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

    private static func digits(_ number: Int) -> String {
        String(repeating: "0", count: max(0, 3 - String(number).count)) + String(number)
    }
}
