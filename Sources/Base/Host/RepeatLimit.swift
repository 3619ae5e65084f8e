// SPDX-License-Identifier: GPL-3.0-or-later

/// Limits how often something of one kind happens in a minute, such as a line of the log, and counts what is left out.
package struct RepeatLimit: Sendable {
    /// The time in milliseconds for which lines are counted.
    package static let window: Int64 = 60_000
    private static let mostKinds = 1000

    private struct Kind {
        var begin: Int64
        var written = 0
        var leftOut = 0
    }

    private let most: Int
    private var kinds: [String: Kind] = [:]

    package init(_ most: Int) { self.most = most }

    /// What the line has to say in addition; nil: it is left out.
    package mutating func addition(_ name: String, at now: Int64) -> String? {
        if kinds.count >= Self.mostKinds { kinds = kinds.filter { now - $0.value.begin < Self.window } }
        var kind = kinds[name] ?? Kind(begin: now)
        var addition = ""
        if now - kind.begin >= Self.window {
            if kind.leftOut > 0 { addition = " (\(kind.leftOut) lines like this were left out)" }
            kind = Kind(begin: now)
        }
        kind.written += 1
        if kind.written > most { kind.leftOut += 1 }
        kinds[name] = kind
        if kind.written == most { addition += "; more lines like this are left out for a minute" }
        return kind.written > most ? nil : addition
    }
}
