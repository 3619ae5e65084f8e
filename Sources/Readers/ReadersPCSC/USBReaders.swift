// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Readers
import Text

/// The smart card readers on USB, whether pcscd has a driver for them or not.
enum USBReaders {
    struct Device: Sendable, Equatable {
        let vendor: UInt16
        let product: UInt16
        /// The name that the device reports; may be empty.
        let name: String

        var identity: String { "\(Hex.encode(vendor)):\(Hex.encode(product))" + (name.isEmpty ? "" : " (\(name))") }
    }

    /// Lists the interfaces of class 0b (CCID). `root` is the folder in which the kernel lists USB devices and
    /// interfaces.
    static func connected(root: String = "/sys/bus/usb/devices") -> [Device] {
        Sysfs.names(in: root).sorted().compactMap { interface in
            // The kernel names interfaces DEVICE:CONFIGURATION.INTERFACE.
            guard let colon = interface.firstIndex(of: ":"), Sysfs.line(root, interface, "bInterfaceClass") == "0b",
                let vendor = number(root, interface[..<colon], "idVendor"),
                let product = number(root, interface[..<colon], "idProduct")
            else { return nil }
            let device = String(interface[..<colon])
            let words = [Sysfs.line(root, device, "manufacturer"), Sysfs.line(root, device, "product")].compactMap {
                $0
            }
            return Device(vendor: vendor, product: product, name: words.joined(separator: " "))
        }
    }

    /// Finds the connected readers that pcscd does not have.
    ///
    /// Some drivers do not report the USB identity of their reader. Such a reader of pcscd may be any of the connected
    /// ones, so it counts for one of them.
    static func missing(_ connected: [Device], in pcscd: [ReaderFeatures]) -> [Device] {
        var known = pcscd
        var left: [Device] = []
        for reader in connected {
            if let index = known.firstIndex(where: { $0.vendor == reader.vendor && $0.product == reader.product }) {
                known.remove(at: index)
            } else {
                left.append(reader)
            }
        }
        return Array(left.dropFirst(known.count { $0.vendor == nil }))
    }

    static func check(_ missing: [Device]) -> HealthCheck {
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
