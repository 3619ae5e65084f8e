// SPDX-License-Identifier: GPL-3.0-or-later

/// The name that libnfc assigns to a device: `pn532_uart:/dev/ttyUSB0:115200`, `pn53x_usb:001:005`, `acr122_usb`.
package struct ConnectionString: Sendable, Hashable {
    package enum Place: Sendable, Hashable {
        /// A serial line, I²C or SPI bus: its device file, and the speed of a serial line in baud. nil is 115 200 baud.
        case line(path: String, speed: Int?)
        /// The kernel's numbers of the bus and the device.
        case usb(bus: Int, device: Int)
        /// All devices of the driver.
        case any
    }

    package let text: String
    package let driver: String
    package let place: Place

    /// The size of libnfc's buffer is 1024 bytes with the terminating zero.
    package static let maximumLength = 1023

    /// Fails when the text names no driver, or has characters or a length that libnfc does not expect.
    package init?(_ text: String) {
        let characters = text.utf8
        guard characters.count <= Self.maximumLength, characters.allSatisfy({ (0x21...0x7E).contains($0) }) else {
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
        self.text = text
        self.driver = driver
    }

    private static func number(_ text: String, upTo limit: Int) -> Int? {
        guard (1...8).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int(text).flatMap { $0 <= limit ? $0 : nil }
    }

    /// Two strings with the same identity name the same device.
    package var identity: String {
        switch place {
        case .line(let path, _): path
        case .usb(let bus, let device): "usb \(bus) \(device)"
        case .any: driver
        }
    }

    /// How a device looks for cards.
    enum Search: Sendable {
        /// The chip looks for both types until it finds a card. libnfc waits in one select(2).
        case byChip
        /// The chip looks for one type at a time. The driver switches between the types.
        case alternating
        /// The driver sends a command for each look. The chip does not wait for cards, or libnfc polls the bus (I²C,
        /// SPI).
        case polling
    }

    var search: Search {
        switch driver {
        case "pn532_uart": .byChip
        case "pn53x_usb": .alternating
        default: .polling
        }
    }

    /// FSDI, and the upper limit of FSCI. libnfc reads one byte of the length that an ACS controller sends, so such a
    /// controller cannot carry a frame of 256 bytes.
    var maximumFrameCode: UInt8 { driver.hasPrefix("acr122") ? 7 : FrameSize.maximumCode }
}
