// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// Finds out whether a controller drops repeated advertisements. Such a controller reports each sender once in a scan
/// of the kernel, which lasts 10.24 s, and once after each pause of the discovery.
struct RepeatWatch {
    enum Result {
        case unknown
        /// Every advertisement is reported.
        case passes
        case drops
    }

    private struct Device {
        /// When the device was last received. This time does not include pauses of the discovery.
        var time: Milliseconds
        /// The discovery in which the device was last received.
        var discovery: Int
        /// The number of successive short gaps.
        var shortGaps = 0
    }

    private(set) var result = Result.unknown
    private var devices: [String: Device] = [:]
    private var discovery = 0
    /// The number of long gaps of all devices since the result was last set to `passes`.
    private var longGaps = 0

    /// An advertisement and its scan response are at most this far apart.
    private static let pair: Milliseconds = 500
    /// A gap up to this length is short. Two successive short gaps mean three reports within 10 s, which overlap at
    /// most two scans.
    private static let short: Milliseconds = 5000
    /// A gap from this length on is long.
    private static let long: Milliseconds = 7000
    /// The number of long gaps after which the result is `drops`.
    private static let proof = 3
    /// Devices that are compared at the same time.
    private static let capacity = 256

    /// A device was received. `time` does not include pauses of the discovery.
    /// - Returns: whether the result has changed.
    mutating func received(_ path: String, at time: Milliseconds) -> Bool {
        let old = result
        guard var device = devices[path] else {
            if devices.count >= Self.capacity { devices = [:] }
            devices[path] = Device(time: time, discovery: discovery)
            return false
        }
        let gap = time - device.time
        guard gap > Self.pair || device.discovery != discovery else { return false }
        if gap >= Self.long {
            longGaps += 1
            device.shortGaps = 0
            if longGaps >= Self.proof { result = .drops }
        } else if gap <= Self.short, device.discovery == discovery {
            device.shortGaps += 1
            if device.shortGaps >= 2 { (result, longGaps) = (.passes, 0) }
        } else {
            device.shortGaps = 0
        }
        (device.time, device.discovery) = (time, discovery)
        devices[path] = device
        return result != old
    }

    /// The discovery was started again, so the controller reports every device again.
    mutating func restarted() { discovery += 1 }
}
