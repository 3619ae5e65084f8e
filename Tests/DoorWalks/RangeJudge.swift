// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// A way of deciding whether a reader is in range.
package enum RangeJudge: String, CaseIterable, Sendable {
    /// Ours: `ReaderTracker`.
    case badged
    /// The mean of the last three values above the limit, as phones do.
    case meanOfThree
    /// A moving average with weight 0.3 for each value; in range from the limit on, out of it when 16 dB are lost.
    case movingAverage

    /// How a judge fares on many walks.
    package struct Score: Sendable {
        package var walks = 0
        /// Changes of mind beyond those that the walk itself has.
        package var flips = 0
        /// Visits that were never noticed.
        package var missed = 0
        /// Milliseconds by which entering and leaving were noticed late; negative: early.
        package var enter: [Double] = []
        package var leave: [Double] = []

        package init() {}
    }

    /// In range or not after each sample.
    package func verdicts(_ walk: Walk, limit: Double) -> [Bool] {
        switch self {
        case .badged:
            var limits = RangeLimits()
            limits.configured = [.motion: Int(limit)]
            let tracker = ReaderTracker(limits: limits)
            let address = DeviceAddress(bits: 0xC000_0000_0001, isRandom: true)
            let data: [UInt8] = [
                17, 0x07, 2, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0,
            ]
            return walk.samples.map { sample in
                tracker.sweep(at: sample.time)
                let report = AdvertisingReport(address: address, rssi: sample.rssi)
                tracker.hear(report, data.span, adapter: 0, at: sample.time)
                return tracker.readers.first?.inRange.contains(.motion) ?? false
            }
        case .meanOfThree:
            return walk.samples.indices.map { index in
                let last = walk.samples[max(0, index - 2)...index].filter {
                    walk.samples[index].time - $0.time <= 3000
                }
                return last.count >= 2
                    && last.reduce(0.0) { $0 + Double($1.rssi) } / Double(last.count) >= limit
            }
        case .movingAverage:
            var level: Double?
            var isIn = false
            return walk.samples.map { sample in
                level = level.map { $0 + 0.3 * (Double(sample.rssi) - $0) } ?? Double(sample.rssi)
                isIn = (level ?? 0) >= (isIn ? limit - 16 : limit)
                return isIn
            }
        }
    }

    package func judge(_ walk: Walk, limit: Double, into score: inout Score) {
        let verdicts = verdicts(walk, limit: limit)
        let times = walk.samples.map(\.time)
        func changes(_ values: [Bool]) -> [Int] {
            values.indices.filter { values[$0] != ($0 == 0 ? false : values[$0 - 1]) }
        }
        let truth = changes(walk.samples.map { $0.truth >= limit })
        let ours = changes(verdicts)
        score.walks += 1
        score.flips += max(0, ours.count - truth.count)
        guard let enter = truth.first else { return }
        guard let noticed = ours.first else {
            score.missed += 1
            return
        }
        score.enter.append(Double(times[noticed] - times[enter]))
        if truth.count > 1, let last = ours.last, ours.count.isMultiple(of: 2) {
            score.leave.append(Double(times[last] - times[truth[1]]))
        }
    }
}
