// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch

/// Holds the thread of a script until the test opens the gate.
package final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    package func open() { semaphore.signal() }
    /// Waits for `open`, at most two minutes.
    package func wait() { _ = semaphore.wait(timeout: .now() + 120) }
}
