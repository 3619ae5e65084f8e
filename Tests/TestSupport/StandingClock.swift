// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// A clock that stands still until a test advances it: how long a busy machine takes changes no result.
package final class StandingClock: Sendable {
    private let time = Mutex(ContinuousClock.now)

    package init() {}

    package var now: ContinuousClock.Instant { time.withLock { $0 } }

    package func advance(by duration: Duration) { time.withLock { $0 += duration } }
}
