// SPDX-License-Identifier: GPL-3.0-or-later
import CUdev
import Glibc

/// Reports when udev has prepared a USB device or a serial line, with its rules and permissions applied.
final class UdevMonitor {
    private let udev: OpaquePointer
    private let monitor: OpaquePointer
    /// Readable when there are events to `receive`; non-blocking.
    let descriptor: Int32

    /// Fails where the kernel has no such socket, as in some containers.
    init?() {
        guard let udev = udev_new() else { return nil }
        guard let monitor = udev_monitor_new_from_netlink(udev, "udev") else {
            udev_unref(udev)
            return nil
        }
        self.udev = udev
        self.monitor = monitor
        let codes = [
            udev_monitor_filter_add_match_subsystem_devtype(monitor, "usb", "usb_device"),
            udev_monitor_filter_add_match_subsystem_devtype(monitor, "tty", nil),
            udev_monitor_enable_receiving(monitor),
        ]
        descriptor = udev_monitor_get_fd(monitor)
        guard codes.allSatisfy({ $0 >= 0 }), descriptor >= 0 else { return nil }
    }

    deinit {
        udev_monitor_unref(monitor)
        udev_unref(udev)
    }

    enum Change: Sendable {
        case none
        case removed
        /// A device was added or made ready. Other devices can have been removed.
        case added
    }

    /// Takes all pending events. libudev discards messages whose sender is not root.
    func receive() -> Change {
        var change = Change.none
        while let device = udev_monitor_receive_device(monitor) {
            switch udev_device_get_action(device).map({ String(cString: $0) }) {
            case "unbind": break
            case "remove": if change == .none { change = .removed }
            default: change = .added
            }
            udev_device_unref(device)
        }
        return change
    }
}
