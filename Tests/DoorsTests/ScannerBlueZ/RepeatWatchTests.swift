// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import ScannerBlueZ

@Suite("RepeatWatch", .timeLimit(.minutes(5))) struct RepeatWatchTests {
    @Test(
        "each device is reported once in a scan, also with new devices all the time: the controller drops"
    )
    func drops() {
        var watch = RepeatWatch()
        for scan in Int64(0)..<6 {
            // The advertisement and its scan response, at the start of each scan of the kernel.
            for time in [0, 80] { _ = watch.received("door", at: scan * 10_500 + Int64(time)) }
            // A device that comes shortly before the next scan is reported again at its start.
            for device in 0..<5 {
                if scan > 0 { _ = watch.received("\(scan - 1) \(device)", at: scan * 10_500 + 100) }
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
            _ = watch.received("door", at: round * 8000 + 100)
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
        for time in stride(from: Int64(20_000), to: 60_000, by: 10_500) { _ = watch.received("door", at: time) }
        #expect(watch.result == .drops)
        for time in stride(from: Int64(60_000), to: 63_000, by: 900) { _ = watch.received("door", at: time) }
        #expect(watch.result == .passes)
    }

    @Test("a device with an interval of six seconds proves nothing")
    func slow() {
        var watch = RepeatWatch()
        for time in stride(from: Int64(0), to: 100_000, by: 6000) { _ = watch.received("door", at: time) }
        #expect(watch.result == .unknown)
    }
}
