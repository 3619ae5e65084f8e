// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// The devices of bluetoothd that match a profile, by object path. They are stored because a signal contains only the
/// properties that have changed.
struct BlueZDevices {
    private var devices: [String: BlueZDevice] = [:]
    /// More than the readers in a `ReaderTracker`.
    private static let capacity = 8192

    /// The stored device, or one of which only the path is known.
    subscript(path: String) -> BlueZDevice { devices[path] ?? BlueZDevice(path: path) }

    /// Stores the device if it matches a profile.
    mutating func keep(_ device: BlueZDevice, at path: String) {
        let isKnown = devices[path] != nil
        guard isKnown || AdvertisementDecoder().decode(device.advertisingData.span).profile != nil else { return }
        if !isKnown, devices.count >= Self.capacity { devices.removeAll() }
        devices[path] = device
    }

    mutating func remove(_ path: String) { devices[path] = nil }
}
