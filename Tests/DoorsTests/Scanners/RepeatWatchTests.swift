// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import Bluetooth
@testable import Scanners

@Suite("RepeatWatch", .timeLimit(.minutes(5))) struct RepeatWatchTests {
    /// Receives a device, and starts the discovery again when the watch wants it, as the scanner does. A controller that
    /// drops then reports the device once more, after 300 ms.
    private func receive(_ device: String, at time: Int64, drops: Bool, _ watch: inout RepeatWatch) {
        var time = time
        _ = watch.received(device, at: time)
        while watch.wantsRestart {
            watch.wantsRestart = false
            watch.restarted()
            guard drops else { return }
            time += 300
            _ = watch.received(device, at: time)
        }
    }

    @Test("each device is reported once in a scan, also with new devices all the time: the controller drops")
    func drops() {
        var watch = RepeatWatch()
        for scan in Int64(0)..<6 {
            // The advertisement and its scan response, at the start of each scan of the kernel.
            for time in [0, 80] { receive("door", at: scan * 10_500 + Int64(time), drops: true, &watch) }
            // A device that comes shortly before the next scan is reported again at its start.
            for device in 0..<5 {
                if scan > 0 { _ = watch.received("\(scan - 1) \(device)", at: scan * 10_500 + 1000) }
                _ = watch.received("\(scan) \(device)", at: scan * 10_500 + 9000)
            }
            #expect(watch.result == (scan < 3 ? .unknown : .drops), "\(scan)")
        }
    }

    @Test("with pauses of the discovery, each device is reported once after a pause")
    func pauses() {
        var watch = RepeatWatch()
        for round in Int64(0)..<5 {
            watch.restarted()
            // The time stands still in a pause, so a round has 8 s.
            receive("door", at: round * 8000 + 100, drops: true, &watch)
            _ = watch.received("late \(round)", at: round * 8000 + 7500)
            if round > 0 { _ = watch.received("late \(round - 1)", at: round * 8000 + 90) }
        }
        #expect(watch.result == .drops)
    }

    @Test("a device with three values in a few seconds shows that nothing is dropped, and the result can change")
    func passes() {
        var watch = RepeatWatch()
        for time in stride(from: Int64(0), to: 1500, by: 100) { _ = watch.received("door", at: time) }
        #expect(watch.result == .passes)
        for time in stride(from: Int64(10_500), to: 60_000, by: 10_500) {
            receive("door", at: time, drops: true, &watch)
        }
        #expect(watch.result == .drops)
        for time in stride(from: Int64(70_000), to: 73_000, by: 900) { _ = watch.received("door", at: time) }
        #expect(watch.result == .passes)
    }

    @Test(
        "devices that advertise seldom, and those that were away, prove nothing",
        arguments: [6000, 7500, 9000, 10_240, 10_500, 12_000, 14_000, 60_000] as [Int64],
        [1, 3] as [Int64]
    )
    func slow(_ interval: Int64, _ devices: Int64) {
        var watch = RepeatWatch()
        for round in Int64(0)..<40 {
            for device in 0..<devices {
                receive("\(device)", at: round * interval + device * 1700, drops: false, &watch)
            }
        }
        #expect(watch.result == .unknown)
    }
}
