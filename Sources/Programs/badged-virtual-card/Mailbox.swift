// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Host
import ReadersVirtual
import Synchronization

/// Passes the answers of the card to the main thread.
final class Mailbox: Sendable {
    struct Answer {
        /// The reply of the card; nil after a reset.
        let reply: VirtualCard.Reply?
        /// The insertion in which the command was sent.
        let insertion: UInt64
    }

    /// Readable while the mailbox has answers.
    let descriptor: Int32
    private let answers = Mutex<[Answer]>([])

    init() throws(StartError) {
        descriptor = clinux_eventfd()
        guard descriptor >= 0 else {
            throw StartError("cannot make an eventfd", hint: "raise the limit of open files")
        }
    }

    func put(_ answer: Answer) {
        answers.withLock { $0.append(answer) }
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout.size(ofValue: one))
    }

    func take() -> [Answer] {
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout.size(ofValue: count))
        return answers.withLock { answers in
            defer { answers = [] }
            return answers
        }
    }
}
