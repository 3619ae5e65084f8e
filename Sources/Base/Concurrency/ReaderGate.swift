// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization
package import Threads

/// Lends each reader to one connection at a time, in the order of asking.
///
/// pcscd would do the same, but with a blocked thread for each who waits. A connection may be given up while its thread
/// still hangs in pcscd: whoever then tries again must not leave one more blocked thread each time.
package final class ReaderGate: Sendable {
    /// For each reader that is taken, those who wait for it.
    private let queues = Mutex<[String: [OneShot<Bool>]]>([:])

    package init() {}

    /// Asks for a reader.
    /// - Returns: true when the reader is lent, and `leave` must follow; false for who gives up by filling in false.
    package func enter(_ reader: String) -> OneShot<Bool> {
        let turn = OneShot<Bool>()
        queues.withLock { queues in
            if queues[reader] == nil {
                queues[reader] = []
                turn.fill(true)
            } else {
                // Those who gave up are removed here, so the queue never grows beyond those who wait.
                queues[reader]?.removeAll(where: \.isFilled)
                queues[reader]?.append(turn)
            }
        }
        return turn
    }

    /// Lends the reader to the next who waits.
    package func leave(_ reader: String) {
        queues.withLock { queues in
            while let next = queues[reader]?.first {
                queues[reader]?.removeFirst()
                if next.fill(true) { return }
            }
            queues[reader] = nil
        }
    }
}
