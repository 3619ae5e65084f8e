// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import DoorReaders

/// The devices of bluetoothd, by object path. They are stored from the first signal on, because a signal contains only
/// the properties that have changed.
struct BlueZDevices {
    private var devices: [String: BlueZDevice] = [:]
    /// More than the readers in a `ReaderTracker`.
    private static let capacity = 8192

    subscript(path: String) -> BlueZDevice? { devices[path] }

    mutating func keep(_ device: BlueZDevice, at path: String) {
        if devices.count >= Self.capacity, devices[path] == nil { makeRoom() }
        devices[path] = device
    }

    /// Forgets the devices that match no profile; if too many match, forgets all devices. `BlueZScanner` reads the
    /// properties of a forgotten device again when it is received.
    private mutating func makeRoom() {
        let decoder = AdvertisementDecoder()
        devices = devices.filter { decoder.decode($0.value.advertisingData.span).profile != nil }
        if devices.count > Self.capacity / 2 { devices = [:] }
    }

    mutating func remove(_ path: String) { devices[path] = nil }
}

extension BlueZAdapter {
    /// The adapter as SCAN shows it.
    func shown(isListening: Bool = false) -> RadioAdapter {
        RadioAdapter(name: name, address: address, isPowered: isPowered, isListening: isListening)
    }
}
