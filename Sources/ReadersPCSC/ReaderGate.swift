// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// Lets one connection at a time through to each reader.
///
/// pcscd would sort that out itself, but with a blocked thread for each who waits. That matters when a connection was
/// given up while pcscd or the reader could not be stopped: its thread still hangs there, and whoever tries again and
/// again must not leave a new one behind each time.
final class ReaderGate: Sendable {
    /// Readers that are taken, and who waits for them.
    private let lines = Mutex<[String: [Handover<Void>]]>([:])

    init() {}

    /// Waits until the reader is free and takes it.
    /// - Returns: false when the task was cancelled; then the reader is not taken.
    func enter(_ reader: String) async -> Bool {
        let turn = Handover<Void>()
        lines.withLock { lines in
            if lines[reader] == nil {
                lines[reader] = []
                _ = turn.give(())
            } else {
                lines[reader]?.append(turn)
            }
        }
        let isOurs: Void? = await turn.value { [self] in
            lines.withLock { $0[reader]?.removeAll { $0 === turn } }
        }
        return isOurs != nil
    }

    /// Gives the reader to the next in line.
    func leave(_ reader: String) {
        lines.withLock { lines in
            while let next = lines[reader]?.first {
                lines[reader]?.removeFirst()
                if next.give(()) { return }
            }
            lines[reader] = nil
        }
    }
}
