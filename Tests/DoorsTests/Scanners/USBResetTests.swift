// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import FoundationEssentials
import Host
import Scanners
import TestSupport
import Testing

@Suite("The reset of the USB device of an adapter", .timeLimit(.minutes(5))) @Loop struct USBResetTests {
    /// Records which adapters are switched.
    private final class RecordedPower: PowerSwitch {
        let number: Int
        let calls: Calls
        init(_ number: Int, _ calls: Calls) { (self.number, self.calls) = (number, calls) }
        func isInUse() async -> Bool { false }
        func setPower(_ isOn: Bool) async -> PowerOutcome {
            calls.list.append("hci\(number) \(isOn ? "on" : "off")")
            return .done
        }
    }

    private final class Calls { var list: [String] = [] }

    /// A folder with the devices of sysfs and of /dev/bus/usb.
    private struct Host {
        let folder = try? TemporaryFolder()
        var path: String { folder?.path ?? "" }

        /// Puts adapter `name` on device 4 of bus 1.
        func plug(_ name: String) throws {
            let interface = "\(path)/devices/1-1/1-1:1.0"
            let files = FileManager.default
            try files.createDirectory(atPath: "\(interface)/bluetooth/\(name)", withIntermediateDirectories: true)
            try Data("1\n".utf8).write(to: URL(filePath: "\(path)/devices/1-1/busnum"))
            try Data("4\n".utf8).write(to: URL(filePath: "\(path)/devices/1-1/devnum"))
            try files.createDirectory(atPath: "\(path)/class/\(name)", withIntermediateDirectories: true)
            try files.createSymbolicLink(atPath: "\(path)/class/\(name)/device", withDestinationPath: interface)
            try files.createDirectory(atPath: "\(path)/usb/001", withIntermediateDirectories: true)
            try Data().write(to: URL(filePath: "\(path)/usb/001/004"))
        }

        func unplug(_ name: String) throws {
            try FileManager.default.removeItem(atPath: "\(path)/devices/1-1/1-1:1.0/bluetooth/\(name)")
        }

        func device(_ name: String) -> USBReset.Device? {
            USBReset.Device(adapter: name, sysfs: "\(path)/class", nodes: "\(path)/usb")
        }
    }

    private let host = Host()
    private let calls = Calls()

    @Test("the node of an adapter on USB is found; an adapter elsewhere has none")
    func node() throws {
        try host.plug("hci0")
        #expect(host.device("hci0")?.node == "\(host.path)/usb/001/004")
        #expect(host.device("hci0")?.mayReset == true)
        #expect(host.device("hci1") == nil)
        // The file is no USB device.
        #expect(host.device("hci0")?.reset()?.call == "USBDEVFS_RESET")
        try FileManager.default.removeItem(atPath: "\(host.path)/usb/001/004")
        #expect(host.device("hci0")?.mayReset == false)
        #expect(host.device("hci0")?.reset()?.call == "open")
    }

    @Test("after the reset the adapter is switched on under the number that it has then")
    func otherNumber() async throws {
        try host.plug("hci0")
        let device = try #require(host.device("hci0"))
        let reset = USBReset(device, RecordedPower(0, calls), reset: { nil }) { [calls] in RecordedPower($0, calls) }
        #expect(await reset.setPower(false) == .done)
        try host.unplug("hci0")
        // The kernel has not found it again.
        #expect(await reset.setPower(true) == .failed)
        try host.plug("hci3")
        #expect(await reset.setPower(true) == .done)
        #expect(calls.list == ["hci3 on"])
    }

    @Test("a refused reset is a failure, and a device that is gone is not waited for")
    func faults() async throws {
        try host.plug("hci0")
        let device = try #require(host.device("hci0"))
        let reset = USBReset(device, RecordedPower(0, calls)) { [calls] in RecordedPower($0, calls) }
        #expect(await reset.setPower(false) == .failed)
        try FileManager.default.removeItem(atPath: "\(host.path)/devices/1-1")
        #expect(await reset.setPower(true) == .removed)
        #expect(calls.list.isEmpty)
    }
}
