// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The strength of one sender at one adapter over time.
package struct SignalTrack: Sendable {
    /// Older samples say nothing about now.
    package static let freshness: Milliseconds = 3000
    package static let historyLength = 50
    package static let listLength = 3
    /// The average follows a stronger signal fast and a weaker one slowly: walls and bodies only ever weaken a signal,
    /// and most of that passes. In milliseconds, so that it does not depend on how often a sender sends.
    private static let attack = 500.0
    private static let release = 2500.0

    private struct Sample {
        /// Milliseconds since `origin`.
        var time: UInt32 = 0
        var rssi: Int8 = 0
    }

    private var samples: [50 of Sample] = .init(repeating: Sample())
    /// How many samples there are, and where the next one goes.
    private var count = 0
    private var next = 0
    private let origin: Milliseconds
    /// dBm; see `attack`.
    package private(set) var average: Double
    private var steady: SteadyLevel
    package private(set) var lastHeard: Milliseconds

    package init(_ rssi: Int8, at now: Milliseconds) {
        (origin, lastHeard) = (now, now)
        (average, steady) = (Double(rssi), SteadyLevel(rssi))
        store(rssi, at: now)
    }

    /// dBm without what passes: what is decided by.
    package var level: Double { steady.value }

    private mutating func store(_ rssi: Int8, at now: Milliseconds) {
        samples[next] = Sample(time: UInt32(truncatingIfNeeded: now - origin), rssi: rssi)
        next = (next + 1) % Self.historyLength
        count = min(count + 1, Self.historyLength)
    }

    package mutating func add(_ rssi: Int8, at now: Milliseconds) {
        let value = Double(rssi)
        let pause = now - lastHeard
        if pause > Self.freshness {
            average = value
            steady.begin(rssi)
        } else {
            // Two reports of one moment (advertisement and scan response) are still two measurements.
            let step = max(pause, 20)
            let weight = 1 - exp(-Double(step) / (value > average ? Self.attack : Self.release))
            average += (value - average) * weight
            steady.add(rssi, after: step)
        }
        lastHeard = max(now, lastHeard)
        store(rssi, at: now)
    }

    /// The sample that came `back` samples before the newest, 0 the newest.
    private func sample(_ back: Int) -> Sample {
        samples[(next - 1 - back + 2 * Self.historyLength) % Self.historyLength]
    }

    private func age(_ sample: Sample, _ now: Milliseconds) -> Milliseconds {
        Milliseconds(UInt32(truncatingIfNeeded: now - origin) &- sample.time)
    }

    package var last: Int8 { sample(0).rssi }

    package func isFresh(at now: Milliseconds) -> Bool { now - lastHeard <= Self.freshness }

    /// How many of the newest samples are not older than `freshness`.
    package func freshCount(at now: Milliseconds) -> Int {
        guard isFresh(at: now) else { return 0 }
        var fresh = 0
        while fresh < count, age(sample(fresh), now) <= Self.freshness { fresh += 1 }
        return fresh
    }

    /// At most three fresh values, newest first.
    package func list(at now: Milliseconds) -> [Int8] {
        (0..<min(freshCount(at: now), Self.listLength)).map { sample($0).rssi }
    }

    /// At most fifty values, newest first, however old.
    package var history: [Int8] { (0..<count).map { sample($0).rssi } }

    /// Mean of `list`, nil with fewer than two.
    package func mean(at now: Milliseconds) -> Double? {
        let list = list(at: now)
        guard list.count >= 2 else { return nil }
        return Double(list.reduce(0) { $0 + Int($1) }) / Double(list.count)
    }

    /// Median of at most five fresh values; nil with fewer than two.
    package func median(at now: Milliseconds) -> Double? {
        let values = (0..<min(freshCount(at: now), 5)).map { sample($0).rssi }.sorted()
        guard values.count >= 2 else { return nil }
        let middle = values.count / 2
        return values.count.isMultiple(of: 2)
            ? (Double(values[middle - 1]) + Double(values[middle])) / 2 : Double(values[middle])
    }
}
