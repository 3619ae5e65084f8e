// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Readers
import Text

/// Smart card readers that the kernel sees on USB, whether pcscd has a driver for them or not.
enum USBReaders {
    struct Reader: Sendable, Equatable {
        let vendor: UInt16
        let product: UInt16
        /// As the device tells it, may be empty.
        let name: String

        var identity: String { "\(Hex.encode(vendor)):\(Hex.encode(product))" + (name.isEmpty ? "" : " (\(name))") }
    }

    /// Devices with an interface of class 0b (CCID), one entry for each such interface. `root` is where the kernel lists
    /// USB devices and interfaces.
    static func connected(root: String = "/sys/bus/usb/devices") -> [Reader] {
        Sysfs.names(in: root).sorted().compactMap { interface in
            // Interfaces are named DEVICE:CONFIGURATION.INTERFACE.
            guard let colon = interface.firstIndex(of: ":"), Sysfs.line(root, interface, "bInterfaceClass") == "0b",
                let vendor = number(root, interface[..<colon], "idVendor"),
                let product = number(root, interface[..<colon], "idProduct")
            else { return nil }
            let device = String(interface[..<colon])
            let words = [Sysfs.line(root, device, "manufacturer"), Sysfs.line(root, device, "product")].compactMap {
                $0
            }
            return Reader(vendor: vendor, product: product, name: words.joined(separator: " "))
        }
    }

    /// Which of the connected readers pcscd does not have.
    ///
    /// Drivers tell the USB identity of a reader (libccid does, vendors' drivers often do not). A reader of pcscd
    /// without one may be any of those left over, so it excuses one of them.
    static func missing(_ connected: [Reader], in pcscd: [ReaderFeatures]) -> [Reader] {
        var known = pcscd
        var left: [Reader] = []
        for reader in connected {
            if let index = known.firstIndex(where: { $0.vendor == reader.vendor && $0.product == reader.product }) {
                known.remove(at: index)
            } else {
                left.append(reader)
            }
        }
        return Array(left.dropFirst(known.count { $0.vendor == nil }))
    }

    static func check(_ missing: [Reader]) -> HealthCheck {
        guard !missing.isEmpty else { return HealthCheck("drivers", ok: true) }
        let list = missing.map(\.identity).joined(separator: ", ")
        return HealthCheck(
            "drivers",
            ok: false,
            advice:
                "connected but unknown to pcscd: \(list); install libccid or the driver of the reader's maker, then "
                + "plug the reader in again"
        )
    }

    private static func number(_ root: String, _ device: Substring, _ attribute: String) -> UInt16? {
        Sysfs.line(root, String(device), attribute).flatMap { UInt16($0, radix: 16) }
    }
}
