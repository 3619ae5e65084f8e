// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Buffers the messages that a session still has to send. The size is bounded.
///
/// Answers stay in order. During a backlog, events with a key (READER of one reader, STATUS) wait outside the buffer.
/// Only the newest event of each key is kept.
struct Outbox {
    /// With more bytes than this, no further commands are read from the client.
    static let highWater = 256 * 1024
    /// With more bytes than this, events are coalesced.
    private static let coalescingStart = 64 * 1024
    /// A client with fewer bytes than this is never disconnected for what its user holds.
    static let small = 16 * 1024
    /// A client with this number of unread bytes of events is disconnected. docs/protocol.md, Transport.
    private static let limit = 1 << 20

    private var buffer: [UInt8] = []
    private var sent = 0
    /// Events that a newer one has replaced since the last `takeReplaced`.
    private var replaced = 0
    private var latest: [(key: String, line: [UInt8])] = []
    /// Whether the buffer has bytes of a message with a secret. They are wiped when all bytes are sent.
    private var hasSecret = false

    /// Whether the client has read enough that events can be sent that it may miss.
    var hasRoom: Bool { backlog < Self.highWater }

    var backlog: Int { buffer.count - sent }

    /// The allocated memory in bytes.
    var capacity: Int { buffer.capacity + latest.reduce(0) { $0 + $1.line.capacity } }
    var isEmpty: Bool { backlog == 0 && latest.isEmpty }

    mutating func append(answer line: [UInt8]) {
        if hasSecret { makeRoom(for: line.count + 1) }
        buffer.append(contentsOf: line)
        buffer.append(0x0A)
    }

    /// Appends an event. Returns false if the client has too many unread bytes.
    mutating func append(event line: [UInt8], coalescing key: String?) -> Bool {
        guard let key, backlog > Self.coalescingStart else {
            guard backlog + line.count < Self.limit else { return false }
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

    /// Appends a message with a secret. Returns false if the client has too many unread bytes.
    mutating func append(secret line: [UInt8]) -> Bool {
        guard backlog + line.count < Self.limit else { return false }
        hasSecret = true
        append(answer: line)
        return true
    }

    /// Moves the bytes into larger memory and wipes the old one; an array that grows by itself would not.
    private mutating func makeRoom(for count: Int) {
        guard buffer.capacity < buffer.count + count else { return }
        var larger: [UInt8] = []
        larger.reserveCapacity(2 * (buffer.count + count))
        larger += buffer
        Self.wipe(&buffer)
        buffer = larger
    }

    /// Drops what was not sent, and wipes a secret among it.
    mutating func discard() {
        wipe()
        buffer = []
        sent = 0
        latest = []
    }

    private mutating func wipe() {
        guard hasSecret else { return }
        Self.wipe(&buffer)
        buffer = []
        sent = 0
        hasSecret = false
    }

    private static func wipe(_ buffer: inout [UInt8]) {
        buffer.withUnsafeMutableBytes { memory in
            if let base = memory.baseAddress { explicit_bzero(base, memory.count) }
        }
    }

    enum Progress { case done, blocked, failed }

    /// Sends as many bytes as the socket accepts.
    mutating func flush(to socket: Int32) -> Progress {
        while true {
            while backlog > 0 {
                let count = buffer.withUnsafeBytes { raw in
                    send(socket, raw.baseAddress.map { $0 + sent }, raw.count - sent, Int32(MSG_NOSIGNAL))
                }
                if count < 0 {
                    if errno == EINTR { continue }
                    guard errno == EAGAIN || errno == EWOULDBLOCK else { return .failed }
                    compact()
                    return .blocked
                }
                sent += count
            }
            compact()
            guard !latest.isEmpty else { return .done }
            for entry in latest { append(answer: entry.line) }
            latest = []
        }
    }

    private mutating func compact() {
        if backlog == 0 {
            wipe()
            if buffer.capacity > Self.coalescingStart { buffer = [] } else { buffer.removeAll(keepingCapacity: true) }
            sent = 0
        } else if sent > Self.coalescingStart, !hasSecret {
            buffer.removeFirst(sent)
            sent = 0
        }
    }
}
