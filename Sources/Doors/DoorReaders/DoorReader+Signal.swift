// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

extension DoorReader {
    /// Most adapters of which one reader keeps samples; more are merged into none.
    private static let mostAdapters = 4
    /// So much stronger, for so long, another adapter must hear it to speak for it.
    private static let lead = 6.0
    private static let leadTime: Milliseconds = 1000

    func addSample(_ rssi: Int8, adapter: Int, at now: Milliseconds) {
        learnInterval(now)
        if let index = tracks.firstIndex(where: { $0.adapter == adapter }) {
            tracks[index].track.add(rssi, at: now)
            chooseAdapter(index, at: now)
        } else if tracks.count < Self.mostAdapters {
            tracks.append((adapter, SignalTrack(rssi, at: now)))
            chooseAdapter(tracks.count - 1, at: now)
        }
        adverts += 1
        lastHeard = max(now, lastHeard)
    }

    /// A slowly moving mean. Advertisement and scan response of one moment are one; a long silence is no interval.
    private func learnInterval(_ now: Milliseconds) {
        let pause = now - lastHeard
        guard (20...15_000).contains(pause) else { return }
        interval = interval.map { $0 + (pause - $0) / 8 } ?? pause
    }

    private func chooseAdapter(_ index: Int, at now: Milliseconds) {
        guard index != leading else { return }
        guard signal.isFresh(at: now) else {
            (leading, challenger) = (index, nil)
            return
        }
        guard tracks[index].track.level >= signal.level + Self.lead else {
            if challenger?.index == index { challenger = nil }
            return
        }
        if let challenger, challenger.index == index {
            if now - challenger.since >= Self.leadTime { (leading, self.challenger) = (index, nil) }
        } else {
            challenger = (index, now)
        }
    }

    /// An adapter has gone; false when no other one has ever heard the reader.
    func forget(adapter: Int) -> Bool {
        guard let index = tracks.firstIndex(where: { $0.adapter == adapter }) else { return true }
        guard tracks.count > 1 else { return false }
        tracks.remove(at: index)
        challenger = nil
        leading = tracks.indices.max { tracks[$0].track.lastHeard < tracks[$1].track.lastHeard } ?? 0
        return true
    }

    /// Enters at the limit, with two samples at least; leaves below the hysteresis, or when nothing is heard any more.
    func updateRange(hysteresis: Int, at now: Milliseconds) {
        guard signal.freshCount(at: now) >= 2 || !inRange.isEmpty else { return }
        guard signal.isFresh(at: now) else {
            inRange = []
            return
        }
        let level = signal.level
        for type in OpeningType.allCases where openingTypes.contains(type) {
            let limit = Double(limits[type.index].value)
            if inRange.contains(type) {
                if level < limit - Double(hysteresis) { inRange.remove(OpeningTypes(type)) }
            } else if level >= limit {
                inRange.insert(OpeningTypes(type))
            }
        }
        inRange.formIntersection(openingTypes)
    }

    /// How far away it may be, for people; never a fact.
    package struct Distance: Sendable, Equatable {
        /// Metres.
        package var metres, low, high: Double
    }

    /// From the power at one metre, where the advertisement tells it: 10^((power - level) / 10n), with n from 2 (free
    /// space) to 4 (walls) and 6 dB of doubt.
    package var distance: Distance? {
        guard let powerAtOneMetre else { return nil }
        let loss = Double(powerAtOneMetre) - signal.level
        func metres(_ loss: Double, _ n: Double) -> Double { pow(10, loss / (10 * n)) }
        let bounds = [loss - 6, loss + 6].flatMap { [metres($0, 2), metres($0, 4)] }
        return Distance(metres: metres(loss, 2.5), low: bounds.min() ?? 0, high: bounds.max() ?? 0)
    }
}
