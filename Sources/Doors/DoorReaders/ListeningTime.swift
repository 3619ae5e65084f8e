// SPDX-License-Identifier: GPL-3.0-or-later

/// The time in which the radio has listened. While the radio pauses, nothing can be received, so this time stands
/// still: a pause is no evidence that a reader is gone. The tracker and its readers share one object.
package final class ListeningTime {
    private var total: Milliseconds = 0
    private var pausedSince: Milliseconds?
    /// The radio reports a sender only once in this time, where that is known.
    package var repeatInterval: Milliseconds?

    package var isPaused: Bool { pausedSince != nil }

    package init() {}

    /// The part of the time up to `now` in which the radio has listened.
    package func heard(at now: Milliseconds) -> Milliseconds { min(now, pausedSince ?? now) - total }

    /// Must be called when a pause begins or ends.
    package func setPaused(_ isPaused: Bool, at now: Milliseconds) {
        if isPaused {
            if pausedSince == nil { pausedSince = now }
        } else if let start = pausedSince {
            total += max(now - start, 0)
            pausedSince = nil
        }
    }
}

/// A duration, or a time of one monotonic clock, in milliseconds. This target reads no clock: callers pass the time.
package typealias Milliseconds = Int64
