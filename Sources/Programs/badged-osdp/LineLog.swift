// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import OSDP

/// The log lines that panels and readers in the wall cause without end: thirty of a kind in a minute.
@Loop enum LineLog {
    private static var limit = RepeatLimit(30)

    static func write(_ level: Log.Level, _ kind: String, _ text: String) {
        guard level <= Log.level, let addition = limit.addition(kind, at: Loop.now) else { return }
        Log.write(level) { "\(text)\(addition)" }
    }
}
