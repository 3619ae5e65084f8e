// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// Seconds since 1970, which the test sets.
package final class TestTime: Sendable {
    private let time = Mutex(1_800_000_000)

    package init() {}

    package var now: Int { time.withLock { $0 } }
    package func advance(_ seconds: Int) { time.withLock { $0 += seconds } }
}
