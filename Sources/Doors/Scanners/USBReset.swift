// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
package import Host
import Text

/// Resets the USB device of an adapter, which has the effect of unplugging it and plugging it in, and switches the adapter
/// on, which can have another number then. The C request is USBDEVFS_RESET.
///
/// It needs the right to write to the node of the device. docs/door-readers.md.
@Loop package final class USBReset: PowerSwitch {
    /// The USB device of an adapter.
    package struct Device: Sendable {
        /// The interface of the adapter in sysfs.
        let interface: String
        /// The number of the bus and of the device on it, in decimal.
        private let (bus, device): (String, String)
        private let nodes: String

        /// nil if the adapter is not on USB.
        package init?(adapter: String, sysfs: String = HostAdapters.folder, nodes: String = "/dev/bus/usb") {
            let link = "\(sysfs)/\(adapter)/device"
            guard
                let interface = realpath(link, nil).map({ path in
                    defer { free(path) }
                    return String(cString: path)
                })
            else { return nil }
            let parent = "\(interface)/.."
            guard let bus = Sysfs.line(parent, "busnum"), let device = Sysfs.line(parent, "devnum"),
                Int(bus) != nil, Int(device) != nil
            else { return nil }
            self.interface = interface
            self.bus = bus
            self.device = device
            self.nodes = nodes
        }

        /// Such as `/dev/bus/usb/001/004`.
        package var node: String { "\(nodes)/\(Self.padded(bus))/\(Self.padded(device))" }

        private static func padded(_ number: String) -> String {
            String(repeating: "0", count: max(0, 3 - number.utf8.count)) + number
        }

        package var mayReset: Bool { access(node, W_OK) == 0 }

        var isPresent: Bool { access(interface, F_OK) == 0 }

        /// The number of the adapter that the device has now; nil until the kernel has found it again.
        var adapter: Int? {
            Sysfs.names(in: "\(interface)/bluetooth").first { $0.hasPrefix("hci") }.flatMap { Int($0.dropFirst(3)) }
        }

        /// USBDEVFS_RESET of linux/usbdevice_fs.h.
        private static let resetRequest: UInt = 0x5514

        /// Blocks until the device answers again.
        @Sendable package func reset() -> SystemError? {
            let descriptor = open(node, O_WRONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return SystemError("open") }
            defer { close(descriptor) }
            return ioctl(descriptor, Self.resetRequest, 0) == 0 ? nil : SystemError("USBDEVFS_RESET")
        }
    }

    private let device: Device
    private let power: any PowerSwitch
    private let powerOf: @Loop (Int) -> any PowerSwitch
    private let resetDevice: @Sendable () -> SystemError?

    /// Creates a switch for an adapter whose power is `power`. `powerOf` returns that of the adapter with a number. Tests
    /// replace the reset.
    package init(
        _ device: Device,
        _ power: any PowerSwitch,
        reset: (@Sendable () -> SystemError?)? = nil,
        powerOf: @escaping @Loop (Int) -> any PowerSwitch
    ) {
        self.device = device
        self.power = power
        self.powerOf = powerOf
        resetDevice = reset ?? device.reset
    }

    package func isInUse() async -> Bool { await power.isInUse() }

    package func setPower(_ isOn: Bool) async -> PowerOutcome { isOn ? await switchOn() : await reset() }

    private func switchOn() async -> PowerOutcome {
        guard device.isPresent else { return .removed }
        guard let number = device.adapter else { return .failed }
        return await powerOf(number).setPower(true)
    }

    private func reset() async -> PowerOutcome {
        let done = OneShot<SystemError?>()
        // The kernel takes a second to find the device again.
        let isStarted = startThread { [resetDevice] in done.fill(resetDevice()) }
        let error = isStarted ? await done.value(whenCancelled: nil) : SystemError("pthread_create", EAGAIN)
        guard let error else { return .done }
        Log.warning("the USB device \(device.node) cannot be reset: \(error.description)")
        return .failed
    }
}
