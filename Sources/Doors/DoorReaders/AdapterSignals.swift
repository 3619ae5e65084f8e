// SPDX-License-Identifier: GPL-3.0-or-later

/// The signal of one reader at each adapter that receives it. One adapter, the best one, represents the reader.
struct AdapterSignals {
    /// Adapters that are tracked for one reader; samples of further ones are dropped.
    private static let maximum = 4
    /// Another adapter replaces the best one when its level is higher by this many dB for this time.
    private static let margin = 6.0
    private static let switchTime: Milliseconds = 1000

    private var signals: [(adapter: Int, track: SignalTrack)]
    private var bestIndex = 0
    /// The adapter whose level exceeds the margin, and since when.
    private var candidate: (index: Int, since: Milliseconds)?

    /// `heard` is `now` in listening time.
    init(_ rssi: Int8, adapter: Int, at now: Milliseconds, heard: Milliseconds) {
        signals = [(adapter, SignalTrack(rssi, at: now, heard: heard))]
    }

    var bestAdapter: Int { signals[bestIndex].adapter }

    var best: SignalTrack { signals[bestIndex].track }

    mutating func add(_ rssi: Int8, adapter: Int, at now: Milliseconds, heard: Milliseconds) {
        if let index = signals.firstIndex(where: { $0.adapter == adapter }) {
            signals[index].track.add(rssi, at: now, heard: heard)
            compare(index, at: heard)
        } else if signals.count < Self.maximum {
            signals.append((adapter, SignalTrack(rssi, at: now, heard: heard)))
            compare(signals.count - 1, at: heard)
        }
    }

    /// Compares an adapter with the best one after a new sample.
    private mutating func compare(_ index: Int, at now: Milliseconds) {
        guard index != bestIndex else { return }
        guard best.isFresh(at: now) else {
            bestIndex = index
            candidate = nil
            return
        }
        guard signals[index].track.level >= best.level + Self.margin else {
            if candidate?.index == index { candidate = nil }
            return
        }
        if let candidate, candidate.index == index {
            if now - candidate.since >= Self.switchTime { (bestIndex, self.candidate) = (index, nil) }
        } else {
            candidate = (index, now)
        }
    }

    /// Drops the samples of an adapter that was removed.
    /// - Returns: false when no other adapter has received the reader; nothing is dropped then.
    mutating func remove(adapter: Int) -> Bool {
        guard let index = signals.firstIndex(where: { $0.adapter == adapter }) else { return true }
        guard signals.count > 1 else { return false }
        signals.remove(at: index)
        candidate = nil
        bestIndex = signals.indices.max { signals[$0].track.lastSeen < signals[$1].track.lastSeen } ?? 0
        return true
    }
}
