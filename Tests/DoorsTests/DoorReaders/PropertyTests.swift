// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import DoorTestSupport
import TestSupport
import Testing

@Suite("Properties of ReaderTracker", .timeLimit(.minutes(5))) struct PropertyTests {
    /// The readers that clients know. Each one appears, is updated, and is lost.
    private final class Shown {
        private(set) var numbers: Set<Int> = []

        init(_ tracker: ReaderTracker) {
            tracker.observer = { change, reader in
                switch change {
                case .appeared: #expect(self.numbers.insert(reader.number).inserted)
                case .updated: #expect(self.numbers.contains(reader.number))
                case .lost: #expect(self.numbers.remove(reader.number) != nil)
                }
            }
        }
    }

    @Test(
        "a flood of addresses neither grows the table nor evicts a reader in range",
        arguments: 1...(FullTables.areWanted ? 3 : 1)
    )
    func flood(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        let tracker = ReaderTracker(capacity: 64)
        let shown = Shown(tracker)
        let advert = Adverts.seos()
        var now: Milliseconds = 0
        for _ in 0..<20_000 {
            now += Milliseconds.random(in: 0...3, using: &random)
            if Int.random(in: 0..<20, using: &random) == 0 {
                tracker.receive(advert, from: .door(1), -45, at: now)
            }
            if let due = tracker.nextSweep, due <= now { tracker.sweep(at: now) }
            let stranger = UInt64.random(in: 0..<100_000, using: &random)
            tracker.receive(advert, from: .passing(stranger), Int8.random(in: -95 ... -80, using: &random), at: now)
            #expect(tracker.readers.count <= 64)
        }
        let reader = try #require(tracker.readers.first { $0.address == .door(1) })
        #expect(reader.inRange.contains(.motion))
        #expect(reader.number <= 64)
        #expect(tracker.counters.evicted > 10_000)
        #expect(Set(tracker.readers.filter { !$0.isLost }.map(\.number)) == shown.numbers)
    }

    @Test(
        "with changing addresses, names and pauses, clients get each reader in order, and none is missing",
        arguments: 0..<(FullTables.areWanted ? 8 : 1)
    )
    func rotation(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        let tracker = ReaderTracker(capacity: 32)
        let shown = Shown(tracker)
        let names = [nil, nil, "Lobby", "Gate", "Seos"]
        var (now, isPaused): (Milliseconds, Bool) = (0, false)
        for _ in 0..<20_000 {
            now += Milliseconds.random(in: 0...200, using: &random)
            if Int.random(in: 0..<50, using: &random) == 0 {
                isPaused.toggle()
                tracker.setPaused(isPaused, at: now)
            }
            if let due = tracker.nextSweep, due <= now { tracker.sweep(at: now) }
            if Int.random(in: 0..<500, using: &random) == 0 { tracker.remove(adapter: 1) }
            let number = UInt64.random(in: 0..<100, using: &random)
            let name = names.randomElement(using: &random) ?? nil
            let code = UInt32.random(in: 2...3, using: &random)
            tracker.receive(
                Adverts.seos(code, name: name),
                from: number < 90 ? .passing(number) : .door(number),
                Bool.random(using: &random) ? -60 : nil,
                adapter: Int.random(in: 0...1, using: &random),
                at: now
            )
            #expect(tracker.readers.count <= 32)
            #expect(tracker.nextSweep != nil || isPaused || tracker.readers.isEmpty)
        }
        #expect(Set(tracker.readers.filter { !$0.isLost }.map(\.number)) == shown.numbers)
        #expect(Set(tracker.readers.map(\.address)).count == tracker.readers.count)
        tracker.setPaused(false, at: now)
        while let due = tracker.nextSweep { tracker.sweep(at: due) }
        #expect(tracker.readers.isEmpty && shown.numbers.isEmpty)
    }

    @Test("a full table evicts the least recently seen reader first")
    func oldestFirst() {
        let tracker = ReaderTracker(capacity: 3)
        var lost: [DeviceAddress] = []
        tracker.observer = { change, reader in if change == .lost { lost.append(reader.address) } }
        for (now, number) in [1, 2, 3, 1, 4, 3, 5].enumerated() {
            tracker.receive(Adverts.seos(), from: .door(UInt64(number)), -90, at: Milliseconds(10 * now))
        }
        #expect(lost == [.door(2), .door(1)])
        #expect(tracker.readers.map(\.address) == [.door(4), .door(3), .door(5)])
    }

    @Test("a table full of readers in range adds no reader until one of them is not received any more")
    func full() {
        let tracker = ReaderTracker(capacity: 4)
        for number in 0..<4 { tracker.receive(Adverts.seos(), from: .door(UInt64(number)), -40, from: 0, to: 1000) }
        tracker.receive(Adverts.seos(), from: .door(9), -30, at: 1000)
        #expect(tracker.counters.refused == 1)
        tracker.receive(Adverts.seos(), from: .door(9), -30, at: 4001)
        #expect(tracker.readers.contains { $0.address == .door(9) })
        #expect(tracker.readers.count == 4)
    }

    @Test("random events never exceed the bounds of data and table", arguments: 0..<8)
    func noise(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        let tracker = ReaderTracker(capacity: 32)
        for now in 0..<2000 {
            let length = Int.random(in: 0...60, using: &random)
            var event = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            if length > 4, Bool.random(using: &random) {
                (event[0], event[1], event[2]) = (0x3E, UInt8(length - 2), Bool.random(using: &random) ? 2 : 13)
            }
            let span = event.span
            HCIEvent.forEachReport(in: span) { report, data in
                #expect(data.lowerBound >= 0 && data.upperBound <= length)
                tracker.receive(report, span.extracting(data), adapter: 0, at: Milliseconds(now))
            }
        }
        #expect(tracker.readers.count <= 32)
    }

    @Test(
        "on generated walks the decisions are steadier and earlier than those of a mean of three and a moving average"
    )
    func walks() {
        var scores: [RangeMethod: RangeMethod.Score] = [:]
        for method in RangeMethod.allCases {
            var score = RangeMethod.Score()
            for seed in UInt64(2_000_000)..<(FullTables.areWanted ? 2_000_100 : 2_000_025) {
                for course in Walk.Course.allCases {
                    method.evaluate(Walk(course, limit: -74, seed: seed), limit: -74, into: &score)
                }
            }
            scores[method] = score
        }
        let (ours, three, average) = (scores[.badged], scores[.meanOfThree], scores[.movingAverage])
        #expect((ours?.flips ?? .max) * 100 < (three?.flips ?? 0))
        #expect((ours?.flips ?? .max) <= (average?.flips ?? 0))
        #expect((ours?.delay ?? .infinity) < (three?.delay ?? 0))
        #expect((ours?.delay ?? .infinity) < (average?.delay ?? 0))
    }
}
