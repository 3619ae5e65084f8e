// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// Collects lines.
final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    var count: Int { lines.withLock { $0.count } }

    @Sendable func add(_ line: String) { lines.withLock { $0.append(line) } }
}
