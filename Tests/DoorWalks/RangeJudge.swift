// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Host

/// A way of deciding whether a reader is in range. Whatever it is, who is not heard for three seconds is out of it.
package enum RangeJudge: String, CaseIterable, Sendable {
    /// Ours: `ReaderTracker`.
    case badged
    /// The mean of the last three values above the limit, as phones do.
    case meanOfThree
    /// A moving average with weight 0.3 for each value; in range from the limit on, out of it when 16 dB are lost.
    case movingAverage

    /// A change of mind.
    package struct Verdict: Sendable, Equatable {
        /// Milliseconds since the start of the walk.
        package var time: Int64
        package var isIn: Bool
    }

    package func verdicts(_ walk: Walk, limit: Double) -> [Verdict] {
        switch self {
        case .badged: return Self.tracked(walk, limit)
        case .meanOfThree:
            var last: ArraySlice<Walk.Sample> = []
            return Self.verdicts(walk) { sample in
                last = last.filter { sample.time - $0.time <= SignalTrack.freshness }.suffix(2) + [sample]
                return last.count >= 2 && last.reduce(0.0) { $0 + Double($1.rssi) } / Double(last.count) >= limit
            }
        case .movingAverage:
            var level: Double?
            var isIn = false
            return Self.verdicts(walk) { sample in
                let new = level.map { $0 + 0.3 * (Double(sample.rssi) - $0) } ?? Double(sample.rssi)
                level = new
                isIn = new >= (isIn ? limit - 16 : limit)
                return isIn
            }
        }
    }

    /// The changes of a judge that says in range or not at each sample, and those by silence.
    private static func verdicts(_ walk: Walk, _ judge: (Walk.Sample) -> Bool) -> [Verdict] {
        var verdicts: [Verdict] = []
        var isIn = false
        var heard: Int64 = 0
        func say(_ new: Bool, _ time: Int64) {
            if new != isIn { verdicts.append(Verdict(time: time, isIn: new)) }
            isIn = new
        }
        for sample in walk.samples {
            if sample.time - heard > SignalTrack.freshness { say(false, heard + SignalTrack.freshness) }
            say(judge(sample), sample.time)
            heard = sample.time
        }
        say(false, heard + SignalTrack.freshness)
        return verdicts
    }

    private static func tracked(_ walk: Walk, _ limit: Double) -> [Verdict] {
        var configuration = RadioConfiguration()
        configuration.limits = [OpeningType.motion.name: Int(limit)]
        let tracker = ReaderTracker(configuration: configuration)
        let address = DeviceAddress(bits: 0xC000_0000_0001, isRandom: true)
        let data: [UInt8] = [17, 0x07, 2, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0]
        var verdicts: [Verdict] = []
        func look(_ time: Int64) {
            let isIn = tracker.readers.first?.inRange.contains(.motion) ?? false
            if isIn != (verdicts.last?.isIn ?? false) { verdicts.append(Verdict(time: time, isIn: isIn)) }
        }
        func sweep(until time: Int64) {
            while let due = tracker.nextSweep, due <= time {
                tracker.sweep(at: due)
                look(due)
            }
        }
        for sample in walk.samples {
            sweep(until: sample.time)
            tracker.receive(
                AdvertisingReport(address: address, rssi: sample.rssi),
                data.span,
                adapter: 0,
                at: sample.time
            )
            look(sample.time)
        }
        sweep(until: walk.end + 60_000)
        return verdicts
    }

    // MARK: Score

    /// How a judge fares on many walks.
    package struct Score: Sendable {
        package var walks = 0
        /// Changes of mind beyond those that the walk itself has. A verdict that comes before its time and is taken back
        /// counts here, as does a visit that was none.
        package var flips = 0
        /// Milliseconds from the moment when the person crossed the limit until the verdict was right and stayed right
        /// until the limit was crossed again. What was right before its time, and stayed, is 0: it does not make up for
        /// others that are late. What was never right counts up to the next crossing.
        package var enter: [Double] = []
        package var leave: [Double] = []
        /// The same until the verdict was right for the first time, for however long.
        package var firstEnter: [Double] = []
        package var firstLeave: [Double] = []

        package init() {}

        /// Mean of `enter` and `leave`.
        package var delay: Double { Self.mean(enter + leave) }
        package var flipsPerWalk: Double { Double(flips) / Double(max(walks, 1)) }

        package static func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(max(values.count, 1)) }
    }

    package func judge(_ walk: Walk, limit: Double, into score: inout Score) {
        let verdicts = verdicts(walk, limit: limit)
        let near = walk.samples.filter { $0.truth >= limit }
        score.walks += 1
        score.flips += max(0, verdicts.count - (near.isEmpty ? 0 : 2))
        guard let entered = near.first?.time, let last = near.last?.time else { return }
        let left = walk.samples.first { $0.time > last }?.time ?? walk.end
        score.enter.append(Self.lasting(verdicts, true, from: entered, to: left))
        score.leave.append(Self.lasting(verdicts, false, from: left, to: walk.end))
        score.firstEnter.append(Self.first(verdicts, true, from: entered, to: left))
        score.firstLeave.append(Self.first(verdicts, false, from: left, to: walk.end))
    }

    private static func said(_ verdicts: [Verdict], at time: Int64) -> Bool {
        verdicts.last { $0.time <= time }?.isIn ?? false
    }

    private static func lasting(_ verdicts: [Verdict], _ isIn: Bool, from start: Int64, to end: Int64) -> Double {
        guard said(verdicts, at: end - 1) == isIn else { return Double(end - start) }
        let last = verdicts.last { $0.time < end }?.time ?? start
        return Double(max(last - start, 0))
    }

    private static func first(_ verdicts: [Verdict], _ isIn: Bool, from start: Int64, to end: Int64) -> Double {
        guard said(verdicts, at: start) != isIn else { return 0 }
        let first = verdicts.first { $0.time > start && $0.isIn == isIn }?.time ?? end
        return Double(min(first, end) - start)
    }
}
