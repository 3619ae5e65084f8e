// SPDX-License-Identifier: GPL-3.0-or-later
import CTestSupport
import DoorReaders
import DoorTestSupport
import Glibc

/// The pure code for door readers: the speed of decoding and tracking, and the quality of the verdicts.
enum DoorReaderBench {
    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        if report.wants(.adverts, .advertsMemory) { replay(settings, &report) }
        if report.wants(.flips, .flipsMean, .flipsAverage, .delay, .delayMean, .delayAverage) {
            walks(settings, &report)
        }
    }

    /// Reports of a dense place: 200 devices of each kind, decoded from HCI events.
    private static func replay(_ settings: Settings, _ report: inout Report) {
        var random = Generator(seed: 1)
        let events = (0..<4096).map { _ in event(&random) }
        let tracker = ReaderTracker()
        var now: Milliseconds = 0
        func round() {
            for event in events {
                let span = event.span
                HCIEvent.forEachReport(in: span) { report, data in
                    tracker.receive(report, span.extracting(data), adapter: 0, at: now)
                }
                now += 1
            }
            tracker.sweep(at: now)
        }
        for _ in 0..<20 { round() }
        let before = heap()
        var rates = Samples()
        for _ in 0..<5 {
            let rounds = max(settings.count(100), 1)
            let start = monotonicNow()
            for _ in 0..<rounds { round() }
            rates.add(Double(rounds * events.count) / (microseconds(since: start) / 1e6))
        }
        let after = heap()
        report.add(.adverts, rates.median, "5 rounds \(rates.span(0)); one core, \(tracker.readers.count) readers")
        report.add(.advertsMemory, Double(after - before), "heap in use before and after, by malloc")
    }

    /// A random report: 40 % readers of the Seos kind, 10 % of other profiles, 50 % other devices.
    static func event(_ random: inout Generator) -> [UInt8] {
        let number = UInt64.random(in: 0..<200, using: &random)
        let rssi = Int8.random(in: -95 ... -45, using: &random)
        let kind = Int.random(in: 0..<10, using: &random)
        let address = DeviceAddress(bits: 0xC000_0000_0000 | number | UInt64(kind) << 16, isRandom: true)
        var data: [UInt8] = []
        AdvertisingData.append(0x01, [0x06], to: &data)
        switch kind {
        case 0...3:
            AdvertisingData.append(
                0x07,
                [2, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0],
                to: &data
            )
            AdvertisingData.append(0x09, Array("Seos".utf8), to: &data)
        case 4: AdvertisingData.append(0x03, [0xF0, 0xFF], to: &data)
        default: AdvertisingData.append(0xFF, [0x4C, 0x00, 0x10, 0x05, 1, 2, 3, 4, 5], to: &data)
        }
        return HCIEvent.event(AdvertisingReport(address: address, rssi: rssi), data: data)
    }

    private static func heap() -> Int { Int(ctestsupport_heap_in_use()) }

    /// The first seed; no parameter was tuned on these walks.
    private static let seeds = UInt64(3_000_000)

    private static func walks(_ settings: Settings, _ report: inout Report) {
        let limit = -74.0
        var scores: [RangeMethod: RangeMethod.Score] = [:]
        for method in RangeMethod.allCases {
            var score = RangeMethod.Score()
            for seed in seeds..<seeds + UInt64(settings.count(5000)) {
                for course in Walk.Course.allCases {
                    method.evaluate(Walk(course, limit: limit, seed: seed), limit: limit, into: &score)
                }
            }
            scores[method] = score
        }
        guard let ours = scores[.badged], let three = scores[.meanOfThree], let average = scores[.movingAverage] else {
            return
        }
        let mean = RangeMethod.Score.mean
        func note(_ score: RangeMethod.Score) -> String {
            "enter \(text(mean(score.enter), 0)), leave \(text(mean(score.leave), 0)) ms; first right verdict "
                + "\(text(mean(score.firstEnter), 0)) and \(text(mean(score.firstLeave), 0)) ms"
        }
        let walks = "\(ours.walks) generated walks"
        report.add(.flips, ours.flipsPerWalk, walks, limit: min(three.flipsPerWalk, average.flipsPerWalk))
        report.add(.flipsMean, three.flipsPerWalk, "")
        report.add(.flipsAverage, average.flipsPerWalk, "")
        report.add(.delay, ours.delay, note(ours), limit: min(three.delay, average.delay))
        report.add(.delayMean, three.delay, note(three))
        report.add(.delayAverage, average.delay, note(average))
    }
}
