// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

/// Bounds the messages that a session still has to send.
///
/// Answers stay in order. During a backlog, events with a key (READER of one reader, STATUS) wait outside the stream.
/// Only the newest event of each key is kept.
@Loop struct Outbox {
    /// With more bytes than this, no further commands are read from the client.
    private static let highWater = 256 * 1024
    /// With more bytes than this, events are coalesced.
    private static let coalescingStart = 64 * 1024
    /// A client with fewer bytes than this is never disconnected for what its user holds.
    private static let small = 16 * 1024
    /// A client with this number of unread bytes of events is disconnected. docs/protocol.md, Transport.
    private static let limit = 1 << 20

    private let stream: SocketStream
    /// Events that a newer one has replaced since the last `takeReplaced`.
    private var replaced = 0
    private var latest: [(key: String, line: [UInt8])] = []

    init(_ stream: SocketStream) { self.stream = stream }

    /// Whether the client reads so slowly that nothing more should be made for it.
    var isFull: Bool { stream.backlog > Self.highWater }

    /// Whether its memory does not matter.
    var isSmall: Bool { capacity <= Self.small }

    /// The allocated memory in bytes.
    var capacity: Int { stream.capacity + latest.reduce(0) { $0 + $1.line.capacity } }
    var isEmpty: Bool { stream.backlog == 0 && latest.isEmpty }

    func append(answer line: [UInt8]) {
        stream.append(line)
        stream.append(CollectionOfOne(0x0A))
    }

    /// Appends an event; one with a secret has no key. Returns false if the client has too many unread bytes.
    mutating func append(event line: [UInt8], coalescing key: String?) -> Bool {
        guard let key, stream.backlog > Self.coalescingStart else {
            guard stream.backlog + line.count < Self.limit else { return false }
            append(answer: line)
            return true
        }
        let count = latest.count
        latest.removeAll { $0.key == key }
        replaced += count - latest.count
        latest.append((key, line))
        return latest.reduce(0) { $0 + $1.line.count } < Self.limit
    }

    /// The number of events that a newer one has replaced since the last call.
    mutating func takeReplaced() -> Int {
        defer { replaced = 0 }
        return replaced
    }

    /// Drops what waits outside the stream.
    mutating func discard() { latest = [] }

    /// Sends as many bytes as the socket accepts.
    /// - Returns: false if the connection is broken.
    mutating func flush() -> Bool {
        while true {
            guard stream.flush() else { return false }
            guard stream.backlog == 0, !latest.isEmpty else { return true }
            for entry in latest { append(answer: entry.line) }
            latest = []
        }
    }
}
