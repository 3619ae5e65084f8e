// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization
package import Text

/// Lends each reader to one connection at a time, in the order of the requests.
///
/// pcscd also queues connections, but each waiting connection blocks a thread. A connection may end while its thread is
/// still blocked in pcscd. Without this queue, each further attempt would block one more thread.
package final class ReaderGate: Sendable {
    /// For each lent reader, the requests that wait for it.
    private let queues = Mutex<[String: [OneShot<Bool>]]>([:])

    package init() {}

    /// Requests a reader.
    /// - Returns: a value that becomes true when the reader is lent; `leave` must follow. The caller cancels the
    ///   request by setting false.
    package func enter(_ reader: String) -> OneShot<Bool> {
        let turn = OneShot<Bool>()
        queues.withLock { queues in
            if queues[reader] == nil {
                queues[reader] = []
                turn.fill(true)
            } else {
                // Remove cancelled requests, so that the queue has only requests that still wait.
                queues[reader]?.removeAll(where: \.isFilled)
                queues[reader]?.append(turn)
            }
        }
        return turn
    }

    /// Returns a reader, which is then lent to the next request.
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
