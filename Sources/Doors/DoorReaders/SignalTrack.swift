// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The signal strength of one sender at one adapter over time.
///
/// The age of a sample is the time in which the radio has listened since: callers pass `ListeningTime.heard`.
package struct SignalTrack: Sendable {
    /// Older samples are not used for decisions.
    package static let freshness: Milliseconds = 3000
    package static let historyLength = 50
    package static let listLength = 3
    /// Time constants of the average in milliseconds. The average follows a stronger signal fast and a weaker one
    /// slowly, because obstacles only weaken a signal and most of them are temporary.
    private static let (riseTime, fallTime) = (500.0, 2500.0)

    private struct Sample {
        /// In listening time.
        var time: Milliseconds
        var rssi: Int8
    }

    /// The newest one is last.
    private var samples: [Sample] = []
    /// Exponential moving average in dBm.
    package private(set) var average: Double
    private var filter: LevelFilter
    private var fastFilter: LevelFilter
    package private(set) var lastSeen: Milliseconds
    /// `lastSeen` in listening time.
    package private(set) var lastHeard: Milliseconds

    /// Creates a track with its first sample. `heard` is `now` in listening time; nil: the radio has always listened.
    package init(_ rssi: Int8, at now: Milliseconds, heard: Milliseconds? = nil) {
        average = Double(rssi)
        filter = LevelFilter(rssi, .range)
        fastFilter = LevelFilter(rssi, .comparison)
        lastSeen = now
        lastHeard = heard ?? now
        append(rssi)
    }

    /// dBm without temporary shadows and fading; range decisions use this value.
    package var level: Double { filter.value() }

    /// dBm at this listening time, extrapolated from the last sample; comparisons of readers use this value.
    package func strength(at heard: Milliseconds) -> Double {
        fastFilter.value(after: min(max(heard - lastHeard, 0), Self.freshness))
    }

    private mutating func append(_ rssi: Int8) {
        if samples.count == Self.historyLength { samples.removeFirst() }
        samples.append(Sample(time: lastHeard, rssi: rssi))
    }

    /// Adds a sample in dBm. `heard` is `now` in listening time; nil: the radio has always listened.
    package mutating func add(_ rssi: Int8, at now: Milliseconds, heard: Milliseconds? = nil) {
        let heard = heard ?? now
        let value = Double(rssi)
        if heard - lastHeard > Self.freshness {
            average = value
            filter = LevelFilter(rssi, .range)
            fastFilter = LevelFilter(rssi, .comparison)
        } else {
            // An advertisement and its scan response have nearly the same time and are still two measurements.
            let step = max(now - lastSeen, 20)
            let weight = 1 - exp(-Double(step) / (value > average ? Self.riseTime : Self.fallTime))
            average += (value - average) * weight
            filter.add(rssi, after: step)
            fastFilter.add(rssi, after: step)
        }
        (lastSeen, lastHeard) = (max(now, lastSeen), max(heard, lastHeard))
        append(rssi)
    }

    /// The newest value of any age.
    package var last: Int8 { samples.last?.rssi ?? 0 }

    /// Whether the newest sample is at most `freshness` old.
    package func isFresh(at heard: Milliseconds) -> Bool { heard - lastHeard <= Self.freshness }

    /// The number of fresh samples.
    package func freshCount(at heard: Milliseconds) -> Int {
        samples.count - (samples.lastIndex { heard - $0.time > Self.freshness } ?? -1) - 1
    }

    /// The newest fresh values, newest first, at most `limit`.
    private func newest(_ limit: Int, at heard: Milliseconds) -> [Int8] {
        samples.suffix(min(freshCount(at: heard), limit)).reversed().map(\.rssi)
    }

    /// At most three fresh values, newest first.
    package func list(at heard: Milliseconds) -> [Int8] { newest(Self.listLength, at: heard) }

    /// At most fifty values of any age, newest first.
    package var history: [Int8] { samples.reversed().map(\.rssi) }

    /// Mean of `list`; nil with fewer than two values.
    package func mean(at heard: Milliseconds) -> Double? {
        let list = list(at: heard)
        guard list.count >= 2 else { return nil }
        return Double(list.reduce(0) { $0 + Int($1) }) / Double(list.count)
    }

    /// Median of at most five fresh values; nil with fewer than two.
    package func median(at heard: Milliseconds) -> Double? {
        let values = newest(5, at: heard).sorted()
        guard values.count >= 2 else { return nil }
        let middle = values.count / 2
        return values.count.isMultiple(of: 2)
            ? (Double(values[middle - 1]) + Double(values[middle])) / 2 : Double(values[middle])
    }
}
