// SPDX-License-Identifier: GPL-3.0-or-later

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
