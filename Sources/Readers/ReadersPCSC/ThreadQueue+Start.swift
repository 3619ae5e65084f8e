// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers

extension ThreadQueue {
    /// Starts a thread that does nothing else and ends with the queue; `onEnd` runs last, on the thread.
    /// - Returns: nil when the system has no thread left.
    convenience init?(thread name: String, onEnd: @escaping @Sendable () -> Void) {
        self.init()
        let isStarted = startThread(name) { [self] in
            while serve() != .over {}
            onEnd()
        }
        guard isStarted else { return nil }
    }
}
