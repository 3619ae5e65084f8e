// SPDX-License-Identifier: GPL-3.0-or-later

/// How libnfc names a device: `pn532_uart:/dev/ttyUSB0:115200`, `pn53x_usb:001:005`, `acr122_usb`.
package struct ConnectionString: Sendable, Hashable {
    package enum Place: Sendable, Hashable {
        /// A serial line, I²C or SPI bus: its device file, and for serial lines the speed when it is not 115 200 baud.
        case line(path: String, speed: Int?)
        /// Numbers of bus and device, as the kernel counts.
        case usb(bus: Int, device: Int)
        /// The first device of the driver.
        case any
    }

    package let text: String
    package let driver: String
    package let place: Place

    /// libnfc's buffer has 1024 bytes, a zero among them.
    package static let longest = 1023

    /// nil when it names no driver, or has characters or a length that libnfc does not expect.
    package init?(_ text: String) {
        let characters = text.utf8
        guard characters.count <= Self.longest, characters.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard let driver = parts.first, !driver.isEmpty,
            driver.utf8.allSatisfy({ (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F })
        else { return nil }
        switch parts.count {
        case 1:
            place = .any
        case 2 where parts[1].hasPrefix("/"):
            place = .line(path: parts[1], speed: nil)
        case 3 where parts[1].hasPrefix("/"):
            guard let speed = Self.number(parts[2], upTo: 10_000_000), speed > 0 else { return nil }
            place = .line(path: parts[1], speed: speed)
        case 3:
            guard let bus = Self.number(parts[1], upTo: 999), let device = Self.number(parts[2], upTo: 999) else {
                return nil
            }
            place = .usb(bus: bus, device: device)
        default:
            return nil
        }
        (self.text, self.driver) = (text, driver)
    }

    private static func number(_ text: String, upTo limit: Int) -> Int? {
        guard (1...8).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int(text).flatMap { $0 <= limit ? $0 : nil }
    }

    /// Two strings with the same identity mean the same device.
    package var identity: String {
        switch place {
        case .line(let path, _): path
        case .usb(let bus, let device): "usb \(bus) \(device)"
        case .any: driver
        }
    }

    /// Does libnfc wait for this device in one select(2), so that the chip can look for cards by itself while nobody
    /// wakes? With libusb 0.1 it wakes a thousand times a second, and for I²C and SPI it asks again and again.
    var waitsAsleep: Bool { driver == "pn532_uart" }
}
