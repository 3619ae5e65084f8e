// SPDX-License-Identifier: GPL-3.0-or-later
import Host

/// Counts the connections that come to nothing: they are closed to make room, stay silent, or end before their device is
/// known.
struct ConnectionFlood: Sendable {
    /// More such connections than devices cause.
    struct State: Sendable, Equatable {
        /// Since the flood has begun.
        var connections: Int
        /// The source of most of them.
        var source: RemoteAddress.Host
    }

    /// The number in `window` that devices do not reach. One whose pairing was removed comes back each second.
    static let start = 100
    /// Milliseconds, also those after which a flood is over.
    static let window: Int64 = 10_000
    private static let maximumSources = 256

    private var windowStart = Int64.min
    private var count = 0
    private var sources: [RemoteAddress.Host: Int] = [:]
    private var running: (state: State, last: Int64)?

    /// Counts a connection. One that was closed to make room `isFlood` by itself.
    mutating func add(_ source: RemoteAddress.Host, isFlood: Bool = false, at now: Int64) {
        if state(at: now) == nil { running = nil }
        if windowStart == .min || now - windowStart >= Self.window {
            windowStart = now
            count = 0
            sources.removeAll(keepingCapacity: true)
        }
        count += 1
        if sources[source] != nil || sources.count < Self.maximumSources { sources[source, default: 0] += 1 }
        let before = running.map { $0.state.connections }
        if isFlood || count >= Self.start, let most = sources.max(by: { $0.value < $1.value })?.key {
            running = (State(connections: (before ?? count - 1) + 1, source: most), now)
        } else if let before {
            running?.state.connections = before + 1
        }
    }

    /// The flood that runs; nil: none.
    func state(at now: Int64) -> State? {
        guard let running, now - running.last < Self.window else { return nil }
        return running.state
    }
}

/// What the log says of a flood: that it begins, and that it is over. One that comes and goes does not fill the log.
struct FloodLines: Sendable {
    private var limit = RepeatLimit(2)

    /// - Parameters:
    ///   - before: the connections of the flood that was told last; 0: there was none.
    ///   - now: the flood that runs; nil: none.
    ///   - advice: what helps against it.
    ///   - time: in milliseconds.
    /// - Returns: nil: there is nothing to say.
    mutating func line(
        from before: UInt32,
        to now: ConnectionFlood.State?,
        advice: String,
        at time: Int64
    ) -> (level: Log.Level, text: String)? {
        guard before == 0 || now == nil, let addition = limit.addition("\(now == nil)", at: time) else { return nil }
        guard let now else {
            return (.notice, "the flood of connections is over: \(before) came to nothing\(addition)")
        }
        let text = "a flood of connections to the shared readers, most of them from \(now.source)"
        return (.warning, "\(text); hint: \(advice)\(addition)")
    }
}
