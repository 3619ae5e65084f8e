// SPDX-License-Identifier: GPL-3.0-or-later

extension ReaderTracker {
    /// A lost reader stays in the full list for this time.
    package static let retention: Milliseconds = 600_000
    /// Shortest time between two sweeps.
    private static let shortestPause: Milliseconds = 250

    /// Finds readers that are not received any more: they leave the range, are lost, and are removed in the end. Must be
    /// called at `nextSweep`; earlier calls are harmless.
    package func sweep(at now: Milliseconds) {
        nextSweep = nil
        for reader in table.readers {
            guard now - reader.lastSeen > SignalTrack.freshness else {
                schedule(reader.lastSeen + SignalTrack.freshness + 1, now)
                // All others were seen later.
                break
            }
            if !reader.inRange.isEmpty {
                reader.updateRange(at: now)
                if reader.isActive(at: now) { observer?(.updated, reader) }
            }
            if reader.isActive(at: now) {
                schedule(reader.lastSeen + reader.lossTimeout + 1, now)
            } else if !reader.isLost {
                markLost(reader)
            }
            guard reader.isLost else { continue }
            if now - reader.lastSeen > Self.retention {
                table.remove(reader)
            } else {
                schedule(reader.lastSeen + Self.retention + 1, now)
            }
        }
    }

    private func schedule(_ time: Milliseconds, _ now: Milliseconds) {
        let time = max(time, now + Self.shortestPause)
        nextSweep = nextSweep.map { min($0, time) } ?? time
    }
}
