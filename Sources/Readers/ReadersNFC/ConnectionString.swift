// SPDX-License-Identifier: GPL-3.0-or-later
import ISODEP

/// How libnfc names a device: `pn532_uart:/dev/ttyUSB0:115200`, `pn53x_usb:001:005`, `acr122_usb`.
package struct ConnectionString: Sendable, Hashable {
    package enum Place: Sendable, Hashable {
        /// A serial line, I²C or SPI bus: its device file, and for serial lines the speed when it is not 115 200 baud.
        case line(path: String, speed: Int?)
        /// Numbers of bus and device, as the kernel counts.
        case usb(bus: Int, device: Int)
        /// All devices of the driver.
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

    /// How a device finds cards.
    enum Search: Sendable {
        /// The chip looks for both types by itself until there is a card, and libnfc waits in one select(2).
        case byChip
        /// The chip looks for one type by itself, until it is told to look for the other one.
        case inTurns
        /// The chip, or the controller before it, does not wait, or libnfc asks it again and again (I²C, SPI): it has to
        /// be told to look each time.
        case byAsking
    }

    var search: Search {
        switch driver {
        case "pn532_uart": .byChip
        case "pn53x_usb": .inTurns
        default: .byAsking
        }
    }

    /// Does libnfc reach it without libusb?
    var isLine: Bool { driver.hasPrefix("pn532_") }

    /// FSDI and FSCI: the ACS controllers carry no frame of 256 bytes, as libnfc reads one byte of its length.
    var longestFrameCode: UInt8 { driver.hasPrefix("acr122") ? 7 : FrameSize.largestCode }
}
