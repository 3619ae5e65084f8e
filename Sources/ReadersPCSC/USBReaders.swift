// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Readers

/// Smart card readers that the kernel sees on USB, whether pcscd has a driver for them or not.
enum USBReaders {
    struct Reader: Sendable, Equatable {
        let vendor: UInt16
        let product: UInt16
        /// As the device tells it, may be empty.
        let name: String

        var identity: String { "\(hex(vendor)):\(hex(product))" + (name.isEmpty ? "" : " (\(name))") }

        private func hex(_ number: UInt16) -> String {
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// Devices with an interface of class 0b (CCID), one entry for each such interface. `root` is where the kernel lists
    /// USB devices and interfaces.
    static func connected(root: String = "/sys/bus/usb/devices") -> [Reader] {
        names(in: root).sorted().compactMap { interface in
            // Interfaces are named DEVICE:CONFIGURATION.INTERFACE.
            guard let colon = interface.firstIndex(of: ":"), line(root, interface, "bInterfaceClass") == "0b",
                let vendor = line(root, String(interface[..<colon]), "idVendor").flatMap({ UInt16($0, radix: 16) }),
                let product = line(root, String(interface[..<colon]), "idProduct").flatMap({ UInt16($0, radix: 16) })
            else { return nil }
            let device = String(interface[..<colon])
            let words = [line(root, device, "manufacturer"), line(root, device, "product")].compactMap { $0 }
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

    private static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            names.append(name)
        }
        return names
    }

    private static func line(_ path: String...) -> String? {
        guard let file = fopen(path.joined(separator: "/"), "re") else { return nil }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = fread(&buffer, 1, buffer.count, file)
        return String(decoding: buffer.prefix(count).prefix { $0 != 0x0A }, as: UTF8.self)
    }
}
