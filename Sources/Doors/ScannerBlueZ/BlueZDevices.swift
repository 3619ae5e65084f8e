// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// The devices that bluetoothd tells of, by their paths. It tells each property when it changes, so those that match a
/// profile are kept.
struct BlueZDevices {
    private var devices: [String: BlueZDevice] = [:]
    /// At most; the tracker holds fewer.
    private static let most = 8192

    /// As it is known so far.
    subscript(path: String) -> BlueZDevice { devices[path] ?? BlueZDevice(path: path) }

    mutating func keep(_ device: BlueZDevice, at path: String) {
        let isKnown = devices[path] != nil
        guard isKnown || AdvertisementDecoder().decode(device.advertisingData.span).profile != nil else { return }
        if !isKnown, devices.count >= Self.most { devices.removeAll() }
        devices[path] = device
    }

    mutating func remove(_ path: String) { devices[path] = nil }
}
