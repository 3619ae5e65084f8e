// SPDX-License-Identifier: GPL-3.0-or-later

extension ReaderTracker {
    /// A lost reader stays in the full list for this time.
    package static let retention: Milliseconds = 600_000
    /// Shortest time between two sweeps.
    private static let shortestPause: Milliseconds = 250

    /// Finds readers that are not received any more: they leave the range, are lost, and are removed in the end. Must
    /// be called at `nextSweep`; earlier calls are harmless.
    package func sweep(at now: Milliseconds) {
        nextSweep = nil
        let heard = time.heard(at: now)
        settleHeldSenders(at: now)
        for reader in table.readers {
            guard heard - reader.lastHeard > SignalTrack.freshness else {
                schedule(reader.lastHeard + SignalTrack.freshness + 1, now)
                // All others were seen later.
                break
            }
            if !reader.inRange.isEmpty {
                reader.updateRange(at: now)
                if reader.isActive(at: now) { observer?(.updated, reader) }
            }
            if reader.isActive(at: now) {
                schedule(reader.lastHeard + reader.lossTimeout + 1, now)
            } else if !reader.isLost {
                markLost(reader)
            }
            guard reader.isLost else { continue }
            if heard - reader.lastHeard > Self.retention {
                table.remove(reader)
            } else {
                schedule(reader.lastHeard + Self.retention + 1, now)
            }
        }
    }

    /// Schedules a sweep for this listening time. During a pause of the radio no time passes; its end causes a sweep.
    func schedule(_ deadline: Milliseconds, _ now: Milliseconds) {
        guard !time.isPaused else { return }
        let due = now + max(deadline - time.heard(at: now), Self.shortestPause)
        nextSweep = nextSweep.map { min($0, due) } ?? due
    }
}
