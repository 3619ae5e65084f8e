// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Host

/// A method that decides whether a reader is in range. With every method a reader that is not received for three seconds
/// leaves the range.
package enum RangeMethod: String, CaseIterable, Sendable {
    /// `ReaderTracker`.
    case badged
    /// In range while the mean of the last three values is at least the limit, as phones decide.
    case meanOfThree
    /// A moving average with a weight of 0.3 for each value; enters at the limit and leaves 16 dB below.
    case movingAverage

    /// A change between in range and out of range.
    package struct Decision: Sendable, Equatable {
        /// Milliseconds since the start of the walk.
        package var time: Int64
        package var isIn: Bool
    }

    package func decisions(_ walk: Walk, limit: Double) -> [Decision] {
        switch self {
        case .badged: return Self.decisionsOfTracker(walk, limit)
        case .meanOfThree:
            var last: ArraySlice<Walk.Sample> = []
            return Self.decisions(walk) { sample in
                last = last.filter { sample.time - $0.time <= SignalTrack.freshness }.suffix(2) + [sample]
                return last.count >= 2 && last.reduce(0.0) { $0 + Double($1.rssi) } / Double(last.count) >= limit
            }
        case .movingAverage:
            var level: Double?
            var isIn = false
            return Self.decisions(walk) { sample in
                let new = level.map { $0 + 0.3 * (Double(sample.rssi) - $0) } ?? Double(sample.rssi)
                level = new
                isIn = new >= (isIn ? limit - 16 : limit)
                return isIn
            }
        }
    }

    /// The decisions of a method that decides at each sample, and those after a silence.
    private static func decisions(_ walk: Walk, _ isInRange: (Walk.Sample) -> Bool) -> [Decision] {
        var decisions: [Decision] = []
        var isIn = false
        var lastSeen: Int64 = 0
        func decide(_ new: Bool, _ time: Int64) {
            if new != isIn { decisions.append(Decision(time: time, isIn: new)) }
            isIn = new
        }
        for sample in walk.samples {
            if sample.time - lastSeen > SignalTrack.freshness { decide(false, lastSeen + SignalTrack.freshness) }
            decide(isInRange(sample), sample.time)
            lastSeen = sample.time
        }
        decide(false, lastSeen + SignalTrack.freshness)
        return decisions
    }

    private static func decisionsOfTracker(_ walk: Walk, _ limit: Double) -> [Decision] {
        var configuration = RadioConfiguration()
        configuration.limits = [OpeningType.motion.name: Int(limit)]
        let tracker = ReaderTracker(configuration: configuration)
        let address = DeviceAddress(bits: 0xC000_0000_0001, isRandom: true)
        let data: [UInt8] = [17, 0x07, 2, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0]
        var decisions: [Decision] = []
        func record(_ time: Int64) {
            let isIn = tracker.readers.first?.inRange.contains(.motion) ?? false
            if isIn != (decisions.last?.isIn ?? false) { decisions.append(Decision(time: time, isIn: isIn)) }
        }
        func sweep(until time: Int64) {
            while let due = tracker.nextSweep, due <= time {
                tracker.sweep(at: due)
                record(due)
            }
        }
        for sample in walk.samples {
            sweep(until: sample.time)
            let report = AdvertisingReport(address: address, rssi: sample.rssi)
            tracker.receive(report, data.span, adapter: 0, at: sample.time)
            record(sample.time)
        }
        sweep(until: walk.end + 60_000)
        return decisions
    }

    // MARK: Score

    /// The results of a method on many walks.
    package struct Score: Sendable {
        package var walks = 0
        /// Decisions beyond those that a walk requires: decisions that are revoked, and a range that was entered although the
        /// person never came near.
        package var flips = 0
        /// Milliseconds from the moment when the person crosses the limit until the decision is right and stays right until
        /// the next crossing. A decision before that moment counts as 0. Without a right decision, the time until the next
        /// crossing counts.
        package var enter: [Double] = []
        package var leave: [Double] = []
        /// The same until the decision is right for the first time.
        package var firstEnter: [Double] = []
        package var firstLeave: [Double] = []

        package init() {}

        /// The mean of `enter` and `leave`.
        package var delay: Double { Self.mean(enter + leave) }
        package var flipsPerWalk: Double { Double(flips) / Double(max(walks, 1)) }

        package static func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(max(values.count, 1)) }
    }

    /// Decides on a walk and adds the result to the score.
    package func evaluate(_ walk: Walk, limit: Double, into score: inout Score) {
        let decisions = decisions(walk, limit: limit)
        let near = walk.samples.filter { $0.truth >= limit }
        score.walks += 1
        score.flips += max(0, decisions.count - (near.isEmpty ? 0 : 2))
        guard let entered = near.first?.time, let last = near.last?.time else { return }
        let left = walk.samples.first { $0.time > last }?.time ?? walk.end
        score.enter.append(Self.lasting(decisions, true, from: entered, to: left))
        score.leave.append(Self.lasting(decisions, false, from: left, to: walk.end))
        score.firstEnter.append(Self.first(decisions, true, from: entered, to: left))
        score.firstLeave.append(Self.first(decisions, false, from: left, to: walk.end))
    }

    private static func isIn(_ decisions: [Decision], at time: Int64) -> Bool {
        decisions.last { $0.time <= time }?.isIn ?? false
    }

    private static func lasting(_ decisions: [Decision], _ isIn: Bool, from start: Int64, to end: Int64) -> Double {
        guard Self.isIn(decisions, at: end - 1) == isIn else { return Double(end - start) }
        let last = decisions.last { $0.time < end }?.time ?? start
        return Double(max(last - start, 0))
    }

    private static func first(_ decisions: [Decision], _ isIn: Bool, from start: Int64, to end: Int64) -> Double {
        guard Self.isIn(decisions, at: start) != isIn else { return 0 }
        let first = decisions.first { $0.time > start && $0.isIn == isIn }?.time ?? end
        return Double(min(first, end) - start)
    }
}
