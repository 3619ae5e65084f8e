// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The signal strength of one sender at one adapter over time.
package struct SignalTrack: Sendable {
    /// Older samples are not used for decisions.
    package static let freshness: Milliseconds = 3000
    package static let historyLength = 50
    package static let listLength = 3
    /// Time constants of the average in milliseconds. The average follows a stronger signal fast and a weaker one slowly,
    /// because obstacles only weaken a signal and most of them are temporary.
    private static let (riseTime, fallTime) = (500.0, 2500.0)

    private struct Sample {
        var time: Milliseconds
        var rssi: Int8
    }

    /// The newest one is last.
    private var samples: [Sample] = []
    /// Exponential moving average in dBm.
    package private(set) var average: Double
    private var filter: LevelFilter
    package private(set) var lastSeen: Milliseconds

    package init(_ rssi: Int8, at now: Milliseconds) {
        (average, filter, lastSeen) = (Double(rssi), LevelFilter(rssi), now)
        append(rssi)
    }

    /// dBm without temporary shadows and fading; range decisions use this value.
    package var level: Double { filter.value }

    private mutating func append(_ rssi: Int8) {
        if samples.count == Self.historyLength { samples.removeFirst() }
        samples.append(Sample(time: lastSeen, rssi: rssi))
    }

    package mutating func add(_ rssi: Int8, at now: Milliseconds) {
        let value = Double(rssi)
        let pause = now - lastSeen
        if pause > Self.freshness {
            average = value
            filter = LevelFilter(rssi)
        } else {
            // An advertisement and its scan response have nearly the same time and are still two measurements.
            let step = max(pause, 20)
            let weight = 1 - exp(-Double(step) / (value > average ? Self.riseTime : Self.fallTime))
            average += (value - average) * weight
            filter.add(rssi, after: step)
        }
        lastSeen = max(now, lastSeen)
        append(rssi)
    }

    package var last: Int8 { samples.last?.rssi ?? 0 }

    package func isFresh(at now: Milliseconds) -> Bool { now - lastSeen <= Self.freshness }

    /// The number of fresh samples.
    package func freshCount(at now: Milliseconds) -> Int {
        samples.count - (samples.lastIndex { now - $0.time > Self.freshness } ?? -1) - 1
    }

    /// The newest fresh values, newest first, at most `limit`.
    private func newest(_ limit: Int, at now: Milliseconds) -> [Int8] {
        samples.suffix(min(freshCount(at: now), limit)).reversed().map(\.rssi)
    }

    /// At most three fresh values, newest first.
    package func list(at now: Milliseconds) -> [Int8] { newest(Self.listLength, at: now) }

    /// At most fifty values of any age, newest first.
    package var history: [Int8] { samples.reversed().map(\.rssi) }

    /// Mean of `list`; nil with fewer than two values.
    package func mean(at now: Milliseconds) -> Double? {
        let list = list(at: now)
        guard list.count >= 2 else { return nil }
        return Double(list.reduce(0) { $0 + Int($1) }) / Double(list.count)
    }

    /// Median of at most five fresh values; nil with fewer than two.
    package func median(at now: Milliseconds) -> Double? {
        let values = newest(5, at: now).sorted()
        guard values.count >= 2 else { return nil }
        let middle = values.count / 2
        return values.count.isMultiple(of: 2)
            ? (Double(values[middle - 1]) + Double(values[middle])) / 2 : Double(values[middle])
    }
}
