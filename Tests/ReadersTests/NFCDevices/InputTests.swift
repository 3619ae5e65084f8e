// SPDX-License-Identifier: GPL-3.0-or-later
import CNFC
import Foundation
import Host
import Readers
import TestSupport
import Testing

@testable import NFCDevices
@testable import ReadersNFC

@Suite("Input of the NFC driver", .timeLimit(.minutes(5)))
struct NFCInputTests {
    @Test("libnfc gets the functions that replace those of libusb")
    func replacements() throws { try NFCLibrary.checkReplacements() }

    @Test(
        "connection strings of libnfc are parsed",
        arguments: [
            ("pn532_uart:/dev/ttyUSB0", "pn532_uart", .line(path: "/dev/ttyUSB0", speed: nil)),
            ("pn532_uart:/dev/ttyUSB0:9600", "pn532_uart", .line(path: "/dev/ttyUSB0", speed: 9600)),
            ("pn532_i2c:/dev/i2c-1", "pn532_i2c", .line(path: "/dev/i2c-1", speed: nil)),
            ("pn53x_usb:001:005", "pn53x_usb", .usb(bus: 1, device: 5)),
            ("acr122_usb", "acr122_usb", .any),
        ] as [(String, String, ConnectionString.Place)]
    )
    func connectionString(text: String, driver: String, place: ConnectionString.Place) throws {
        let connection = try #require(ConnectionString(text))
        #expect(connection.text == text && connection.driver == driver && connection.place == place)
        let searches: [String: ConnectionString.Search] = ["pn532_uart": .byChip, "pn53x_usb": .alternating]
        #expect(connection.search == searches[driver] ?? .polling)
    }

    @Test(
        "an invalid connection string is refused",
        arguments: [
            "", ":", "/dev/ttyUSB0", "pn532 uart:/dev/ttyUSB0", "PN532_UART:/dev/x", "pn532_uart:ttyUSB0",
            "pn532_uart:/dev/x:", "pn532_uart:/dev/x:0", "pn532_uart:/dev/x:fast", "pn532_uart:/dev/x:1:2",
            "pn53x_usb:1", "pn53x_usb:a:b", "pn53x_usb:1:1000", "pn532_uart:/dev/\u{7}", "pn532_uart:/dev/ä",
            "x:/" + String(repeating: "a", count: 1021),
        ]
    )
    func noConnectionString(text: String) { #expect(ConnectionString(text) == nil) }

    @Test("two strings for one device have the same identity")
    func identity() {
        #expect(
            ConnectionString("pn532_uart:/dev/ttyUSB0")?.identity
                == ConnectionString("pn532_uart:/dev/ttyUSB0:115200")?.identity
        )
        #expect(ConnectionString("pn53x_usb:001:005")?.identity == ConnectionString("pn53x_usb:1:5")?.identity)
    }

    @Test("a target with an invalid length is malformed", arguments: [0, 3, 5, 8, 11, 255, Int.max, -1])
    func lengths(length: Int) {
        var target = nfc_target()
        target.nm.nmt = NMT_ISO14443A
        withUnsafeMutableBytes(of: &target) { bytes in
            bytes.storeBytes(of: length, toByteOffset: 3, as: Int.self)
        }
        #expect(Target(target) == .malformed(isTypeB: false))
    }

    @Test("a target of type A and one of type B are parsed")
    func targets() throws {
        var target = nfc_target()
        target.nm.nmt = NMT_ISO14443A
        withUnsafeMutableBytes(of: &target) { bytes in
            bytes[2] = 0x20
            bytes.storeBytes(of: 4, toByteOffset: 3, as: Int.self)
            for index in 0..<4 { bytes[11 + index] = UInt8(index) + 8 }
        }
        #expect(Target(target) == .a(identifier: [8, 9, 10, 11], selectAnswer: 0x20))
        #expect(Target(target).hasBlockProtocol)
        target.nm.nmt = NMT_ISO14443B
        withUnsafeMutableBytes(of: &target) { bytes in
            for (index, value) in [1, 2, 3, 4, 5, 6, 7, 8, 0, 0x81, 0x90].enumerated() { bytes[index] = UInt8(value) }
        }
        guard case .b(let answer) = Target(target) else { throw Unexpected("the target is not of type B") }
        #expect(answer.identifier == [1, 2, 3, 4] && answer.protocolInfo == [0, 0x81, 0x90])
    }

    @Test("USB devices are found with the driver that uses them, and the advice names it")
    func usb() throws {
        let temporary = try TemporaryFolder()
        let root = URL(filePath: temporary.path)
        func device(_ name: String, _ ids: (String, String), interface: String, driver: String?) throws {
            let folder = root.appending(path: name), inner = root.appending(path: name + ":1.0")
            for folder in [folder, inner] {
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            }
            let files = ["idVendor": ids.0, "idProduct": ids.1, "busnum": "1", "devnum": "7", "product": "Reader"]
            for (file, text) in files { try Data((text + "\n").utf8).write(to: folder.appending(path: file)) }
            try Data((interface + "\n").utf8).write(to: inner.appending(path: "bInterfaceClass"))
            guard let driver else { return }
            try FileManager.default.createSymbolicLink(
                at: inner.appending(path: "driver"),
                withDestinationURL: URL(filePath: "/sys/bus/usb/drivers/\(driver)")
            )
        }
        try device("1-1", ("04cc", "2533"), interface: "ff", driver: "pn533_usb")
        try device("1-2", ("072f", "2200"), interface: "0b", driver: "usbfs")
        try device("1-3", ("04e6", "5591"), interface: "ff", driver: nil)
        try device("1-4", ("046d", "c31c"), interface: "03", driver: "usbhid")
        try device("1-5", ("04cc", "0531"), interface: "ff", driver: "usbfs")
        let devices = USBDevice.connected(root: root.path)
        #expect(devices.map(\.vendor) == [0x04CC, 0x072F, 0x04E6, 0x04CC])
        let advice = devices.map { NFCHealth.check($0, isDenied: true)?.advice }
        #expect(advice[0]?.contains("blacklist pn533_usb") == true)
        #expect(advice[1] == nil)
        #expect(advice[2]?.contains("badged cannot read and write /dev/bus/usb/001/007 (04e6:5591 (Reader))") == true)
        #expect(advice[3]?.contains("another program uses 04cc:0531") == true)
        #expect(USBDevice.connected(root: "/nowhere").isEmpty)
    }
}
