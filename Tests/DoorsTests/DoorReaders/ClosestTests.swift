// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import DoorTestSupport
import Glibc
import TestSupport
import Testing

@Suite("The closest reader on generated walks", .timeLimit(.minutes(5))) struct ClosestTests {
    /// How often the closest reader was right, in percent, and how often it changed in each walk.
    private struct Score {
        var (walking, standing) = ([Bool](), [Bool]())
        var (changes, walks) = (0, 0)

        static func percent(_ results: [Bool]) -> Double {
            100 * Double(results.count(where: \.self)) / Double(max(results.count, 1))
        }
    }

    /// Asks for the closest reader every 100 ms.
    private static func add(_ corridor: Corridor, to score: inout Score) {
        let tracker = ReaderTracker()
        let advert = Adverts.seos()
        var samples = corridor.samples[...]
        var last: DeviceAddress?
        score.walks += 1
        for time in stride(from: Milliseconds(0), to: corridor.end, by: 100) {
            while let sample = samples.first, sample.time <= time {
                samples.removeFirst()
                tracker.receive(advert, from: .door(UInt64(sample.reader)), sample.rssi, at: sample.time)
            }
            if let due = tracker.nextSweep, due <= time { tracker.sweep(at: time) }
            let closest = tracker.closest(ScanFilter(), at: time)?.address
            if closest != last, last != nil { score.changes += 1 }
            last = closest ?? last
            guard let truth = corridor.nearest(time) else { continue }
            let isRight = closest == .door(UInt64(truth))
            if corridor.isStanding(time) { score.standing.append(isRight) } else { score.walking.append(isRight) }
        }
    }

    /// Interval of the advertisements; the least percentage while walking and while standing; the most changes where two are
    /// due.
    typealias Bar = (interval: Int64, walking: Double, standing: Double, changes: Double)

    @Test(
        "the closest reader follows a person who walks, and stays while the person stands",
        arguments: [(100, 94, 98, 4), (250, 94, 98, 4), (1000, 88, 98, 4)] as [Bar],
        [Corridor.Variant(), .init(distance: 0.5), .init(exponent: 2.5, hasBody: false)]
    )
    func walks(_ bar: Bar, variant: Corridor.Variant) {
        var score = Score()
        for seed in UInt64(0)..<(FullTables.areWanted ? 1000 : 100) {
            Self.add(Corridor(every: bar.interval, variant, seed: seed), to: &score)
        }
        #expect(Score.percent(score.walking) >= bar.walking)
        #expect(Score.percent(score.standing) >= bar.standing)
        #expect(Double(score.changes) / Double(score.walks) <= bar.changes)
    }

    @Test(
        "once a second, the best method that does not know where the readers are is hardly right in 94 % while walking",
        .enabled(if: FullTables.areWanted),
        arguments: [Corridor.Variant(), .init(distance: 0.5), .init(exponent: 2.5, hasBody: false)]
    )
    func oracle(variant: Corridor.Variant) {
        var walking: [Bool] = []
        for seed in UInt64(0)..<60 {
            let corridor = Corridor(every: 1000, variant, seed: seed)
            var oracle = CorridorOracle(variant)
            var samples = corridor.samples[...]
            for time in stride(from: Int64(0), to: corridor.end, by: 500) {
                while let sample = samples.first, sample.time <= time {
                    samples.removeFirst()
                    oracle.receive(sample)
                }
                guard let truth = corridor.nearest(time), !corridor.isStanding(time) else { continue }
                walking.append(oracle.nearest(time) == truth)
            }
        }
        #expect((92...96).contains(Score.percent(walking)))
    }

    @Test(
        "the level of a reader at which a person stops is right after three seconds, at any interval",
        arguments: [100, 250, 1000]
    )
    func overshoot(interval: Int64) throws {
        var (sum, count) = (0.0, 0)
        for seed in UInt64(0)..<40 {
            var random = Generator(seed: seed)
            let tracker = ReaderTracker()
            // 15 m at 1.3 m/s, then 27 s at 0.7 m.
            for time in stride(from: Milliseconds(0), to: 41_000, by: Milliseconds.Stride(interval)) {
                let truth = -59 - 22 * log10(max(0.7, 15 - 1.3 * Double(time) / 1000))
                let rssi = Int8(clamping: Int((truth + random.gauss() * 3 + random.fading(k: 4)).rounded()))
                tracker.receive(Adverts.seos(), from: .door(1), rssi, at: time)
                guard time > 14_000 else { continue }
                sum += try #require(tracker.readers.first).signal.level - truth
                count += 1
            }
        }
        #expect(abs(sum / Double(count)) < 1)
    }
}
