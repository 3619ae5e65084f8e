// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

extension DoorReader {
    func add(_ sample: HeldSender.Sample) {
        updateInterval(sample.heard)
        signals.add(sample.rssi, adapter: sample.adapter, at: sample.time, heard: sample.heard)
        adverts += 1
        (lastSeen, lastHeard) = (max(sample.time, lastSeen), max(sample.heard, lastHeard))
    }

    /// Updates a moving average. An advertisement and its scan response arrive within 20 ms and count as one; a pause
    /// of more than 15 s is not an interval.
    private func updateInterval(_ heard: Milliseconds) {
        let pause = heard - lastHeard
        guard (20...15_000).contains(pause) else { return }
        interval = interval.map { $0 + (pause - $0) / 8 } ?? pause
    }

    /// Updates `inRange`. A reader enters the range at the limit, with at least two fresh samples. It leaves the range
    /// when the level falls below the limit by the hysteresis, or when no sample is fresh.
    func updateRange(at now: Milliseconds) {
        let (signal, heard) = (signal, time.heard(at: now))
        guard signal.freshCount(at: heard) >= 2 || !inRange.isEmpty else { return }
        guard signal.isFresh(at: heard) else {
            inRange = []
            return
        }
        for type in OpeningType.allCases where openingTypes.contains(type) {
            let limit = Double(limit(type).value)
            if inRange.contains(type) {
                if signal.level < limit - RangeLimits.hysteresis { inRange.remove(OpeningTypes(type)) }
            } else if signal.level >= limit {
                inRange.insert(OpeningTypes(type))
            }
        }
        inRange.formIntersection(openingTypes)
    }

    /// An estimate for display; walls and bodies make it unreliable.
    package struct Distance: Sendable, Equatable {
        /// Metres.
        package var metres, low, high: Double
    }

    /// The distance by the log-distance model, 10^((power - level) / 10n); nil when the power at one metre is unknown.
    /// The bounds use exponents n from 2 (free space) to 4 (walls) and an error of 6 dB.
    package var distance: Distance? {
        guard let powerAtOneMetre else { return nil }
        let loss = Double(powerAtOneMetre) - signal.level
        func metres(_ loss: Double, _ n: Double) -> Double { pow(10, loss / (10 * n)) }
        let bounds = [loss - 6, loss + 6].flatMap { [metres($0, 2), metres($0, 4)] }
        return Distance(metres: metres(loss, 2.5), low: bounds.min() ?? 0, high: bounds.max() ?? 0)
    }
}
