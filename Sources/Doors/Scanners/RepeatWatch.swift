// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// Finds out whether a controller drops repeated advertisements. Such a controller reports each sender once in a scan
/// of the kernel, which lasts 10.24 s, and once after each start of the discovery.
///
/// A sender that advertises every ten seconds looks the same. So a suspicion is tested: when the discovery is started
/// again, a controller that drops repeated advertisements reports the sender at once.
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
    /// The discovery must be started again, which tests the suspicion.
    var wantsRestart = false
    /// When the suspicion was first tested; nil: there is none.
    private var suspectedSince: Milliseconds?
    /// The tests that have confirmed the suspicion.
    private var confirmations = 0
    private var devices: [String: Device] = [:]
    private var discovery = 0
    /// The number of long gaps of all devices since the result was last set to `passes`.
    private var longGaps = 0

    /// An advertisement and its scan response are at most this far apart.
    private static let pair: Milliseconds = 500
    /// A gap up to this length is short. Two successive short gaps mean three reports within 10 s, which overlap at
    /// most two scans.
    private static let short: Milliseconds = 5000
    /// A gap of this length is long. After a longer one the sender was away.
    private static let long: ClosedRange<Milliseconds> = 7000...13_000
    /// A sender that is reported within this time after a start of the discovery would have been reported before.
    private static let soon: Milliseconds = 2500
    /// The number of long gaps after which there is a suspicion, and of tests that prove it.
    private static let proof = 3
    private static let tests = 2
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
        if gap >= Self.long.lowerBound {
            device.shortGaps = 0
            // A sender that was received after the test began and not at once again advertises seldom.
            if let suspectedSince, device.time >= suspectedSince { endSuspicion() }
            if gap <= Self.long.upperBound { longGaps += 1 }
            if longGaps >= Self.proof, suspectedSince == nil, result != .drops {
                suspectedSince = time
                wantsRestart = true
            }
        } else if suspectedSince != nil, gap <= Self.soon, device.discovery != discovery {
            confirmations += 1
            wantsRestart = confirmations < Self.tests
            if !wantsRestart {
                result = .drops
                endSuspicion()
            }
        } else if gap <= Self.short, device.discovery == discovery {
            device.shortGaps += 1
            if device.shortGaps >= 2 {
                result = .passes
                endSuspicion()
            }
        } else {
            device.shortGaps = 0
        }
        device.time = time
        device.discovery = discovery
        devices[path] = device
        return result != old
    }

    private mutating func endSuspicion() {
        suspectedSince = nil
        longGaps = 0
        confirmations = 0
        wantsRestart = false
    }

    /// The discovery was started again, so the controller reports every device again.
    mutating func restarted() { discovery += 1 }
}
