// SPDX-License-Identifier: GPL-3.0-or-later
import CUdev
import Glibc

/// Tells when udev has made a USB device or a serial line ready, rules and permissions included.
final class UdevMonitor: @unchecked Sendable {
    private let udev: OpaquePointer
    private let monitor: OpaquePointer
    /// Readable when there is something to `receive`; non-blocking.
    let descriptor: Int32

    /// nil where the kernel gives no such socket, as in some containers.
    init?() {
        guard let udev = udev_new() else { return nil }
        guard let monitor = udev_monitor_new_from_netlink(udev, "udev") else {
            udev_unref(udev)
            return nil
        }
        (self.udev, self.monitor) = (udev, monitor)
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

    enum News: Sendable {
        case none
        case gone
        /// A device has come, or been made ready; others may have gone.
        case come
    }

    /// Takes all events that are there.
    func receive() -> News {
        var news = News.none
        while let device = udev_monitor_receive_device(monitor) {
            // libudev has seen to it that the message is of udev, that is, of root.
            let action = udev_device_get_action(device).map { String(cString: $0) }
            switch action {
            case "unbind": break
            case "remove": if news == .none { news = .gone }
            default: news = .come
            }
            udev_device_unref(device)
        }
        return news
    }
}
