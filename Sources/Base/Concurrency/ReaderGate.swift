// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// Lets one connection at a time through to each reader.
///
/// pcscd would sort that out itself, but with a blocked thread for each who waits. That matters when a connection was
/// given up while pcscd or the reader could not be stopped: its thread still hangs there, and whoever tries again and
/// again must not leave a new one behind each time.
package final class ReaderGate: Sendable {
    /// Readers that are taken, and who waits for them.
    private let lines = Mutex<[String: [Handover<Void>]]>([:])

    package init() {}

    /// A place in the line for a reader: has a value when the reader is taken for whoever asked. Whoever got that must
    /// call `leave`.
    package func enter(_ reader: String) -> Handover<Void> {
        let turn = Handover<Void>()
        lines.withLock { lines in
            // Those who gave up leave the line when somebody joins, so it is never longer than those who wait.
            if lines[reader]?.removeAll(where: { $0.isOver }) == nil {
                lines[reader] = []
                _ = turn.give(())
            } else {
                lines[reader]?.append(turn)
            }
        }
        return turn
    }

    /// Gives the reader to the next in line.
    package func leave(_ reader: String) {
        lines.withLock { lines in
            while let next = lines[reader]?.first {
                lines[reader]?.removeFirst()
                if next.give(()) { return }
            }
            lines[reader] = nil
        }
    }
}
