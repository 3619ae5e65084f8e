// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Drivers
import Host
import Text

/// The driver of boards and readers that libnfc drives; for ISO/IEC 14443 cards of type A and B.
///
/// libnfc runs in the program badged-nfc, while a device may be connected. udev reports new devices. A device without such
/// an event is found when something asks for a look.
@Loop package final class NFCDriver: Driver {
    package nonisolated let name = checkName
    package nonisolated let program = "badged-nfc"
    /// The name of the health check without a device.
    package nonisolated static let checkName = "nfc"
    /// Connection strings from the configuration, in addition to the devices that libnfc lists. The next look opens new
    /// devices and closes those that are no longer named.
    package var sources: [String]
    private var udev: (monitor: UdevMonitor, registration: Loop.Registration)?

    package nonisolated init(devices: [String] = []) { sources = devices }

    package var isNeeded: Bool { DeviceSources.mayHaveDevice(configured: sources) }

    package func start(_ client: DriverClient) {
        if let monitor = UdevMonitor(),
            let registration = try? Loop.watch(
                monitor.descriptor,
                .read,
                { [weak self, weak client] _ in self?.handleUdevEvents(client) }
            )
        {
            udev = (monitor, registration)
        } else {
            Log.warning("udev cannot be watched: NFC devices that are plugged in are found at the next reload")
        }
    }

    package func stop() {
        udev?.registration.cancel()
        udev = nil
    }

    private func handleUdevEvents(_ client: DriverClient?) {
        switch udev?.monitor.receive() {
        case .added: client?.look()
        case .removed where isNeeded: client?.retry()
        case .removed: client?.look()
        case .some(.none), nil: break
        }
    }
}

extension DriverBackend {
    /// Makes the backend for libnfc. `devices` are connection strings.
    package static func nfc(devices: [String], heartbeat: Heartbeat.Times = Heartbeat.Times()) -> DriverBackend {
        DriverBackend(NFCDriver(devices: devices), heartbeat: heartbeat)
    }
}
