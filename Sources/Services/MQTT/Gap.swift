// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// What is counted by itself, and queued until the broker has it.
package enum EventStream: Int, CaseIterable, Sendable {
    case credential, opening

    package var word: String {
        switch self {
        case .credential: "credential"
        case .opening: "opening"
        }
    }
}

/// Why events are missing before an event. docs/fleet.md, Gaps.
package struct Gap: Sendable, Equatable {
    package enum Reason: String, Sendable {
        case queueFull, diskFull, daemonAway, notWatching, storeLost, tooLarge
    }

    package var reason: Reason
    /// The numbers of events that had one.
    package var from: Int?
    package var to: Int?
    /// How many are missing, where that is known.
    package var missed: Int?
    /// Milliseconds since 1970.
    package var since: Int64?
    package var until: Int64?

    package init(
        reason: Reason,
        from: Int? = nil,
        to: Int? = nil,
        missed: Int? = nil,
        since: Int64? = nil,
        until: Int64? = nil
    ) {
        self.reason = reason
        self.from = from
        self.to = to
        self.missed = missed
        self.since = since
        self.until = until
    }

    /// Reads what `json` has written.
    init?(_ json: JSON) {
        guard let reason = json["reason"]?.string.flatMap(Reason.init) else { return nil }
        self.init(
            reason: reason,
            from: json["from"]?.int,
            to: json["to"]?.int,
            missed: json["missed"]?.int,
            since: json["since"]?.int.map { Int64($0) },
            until: json["until"]?.int.map { Int64($0) }
        )
    }

    package var json: JSON {
        func number(_ value: Int?) -> JSON? { value.map { .number(String($0)) } }
        let all: [(String, JSON?)] = [
            ("reason", .string(reason.rawValue)), ("from", number(from)), ("to", number(to)),
            ("missed", number(missed)), ("since", number(since.map { Int($0) })),
            ("until", number(until.map { Int($0) })),
        ]
        return .object(all.compactMap { key, value in value.map { JSON.Member(key, $0) } })
    }

    /// Takes another gap with the same reason into this one.
    mutating func join(_ other: Gap) {
        from = [from, other.from].compactMap(\.self).min()
        to = [to, other.to].compactMap(\.self).max()
        if missed != nil || other.missed != nil { missed = (missed ?? 0) + (other.missed ?? 0) }
        since = [since, other.since].compactMap(\.self).min()
        until = [until, other.until].compactMap(\.self).max()
    }
}

extension [Gap] {
    /// Adds a gap; those with the same reason are joined.
    mutating func join(_ gap: Gap) {
        if let index = firstIndex(where: { $0.reason == gap.reason }) { self[index].join(gap) } else { append(gap) }
    }

    /// Reads the gaps of an event, or an array of them.
    init(of bytes: [UInt8]) {
        let json = try? JSON(bytes)
        self = (json?["gap"]?.array ?? json?.array ?? []).compactMap(Gap.init)
    }

    var json: JSON { .array(map(\.json)) }
}
