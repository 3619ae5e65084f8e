// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// What a session still has to send. Its size is bounded.
///
/// Answers are kept in order. While there is a backlog, events that a later one of the same key makes obsolete (READER of
/// one reader, STATUS) wait outside the buffer, and only the newest of each key is kept.
struct Outbox {
    /// Above this many bytes no more commands are read from the client.
    static let highWater = 256 * 1024
    /// Above this many bytes events are coalesced.
    private static let coalescingStart = 64 * 1024
    /// A client that is this many bytes behind with events is disconnected. docs/protocol.md, Transport.
    private static let limit = 1 << 20

    private var buffer: [UInt8] = []
    private var sent = 0
    private var latest: [(key: String, line: [UInt8])] = []

    var backlog: Int { buffer.count - sent }
    var isEmpty: Bool { backlog == 0 && latest.isEmpty }

    mutating func append(answer line: [UInt8]) {
        buffer.append(contentsOf: line)
        buffer.append(0x0A)
    }

    /// Returns false when the client is too far behind.
    mutating func append(event line: [UInt8], coalescing key: String?) -> Bool {
        guard let key, backlog > Self.coalescingStart else {
            guard backlog + line.count < Self.limit else { return false }
            append(answer: line)
            return true
        }
        latest.removeAll { $0.key == key }
        latest.append((key, line))
        return latest.reduce(0) { $0 + $1.line.count } < Self.limit
    }

    enum Progress { case done, blocked, failed }

    /// Sends as much as the socket takes.
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
            if buffer.capacity > Self.coalescingStart { buffer = [] } else { buffer.removeAll(keepingCapacity: true) }
            sent = 0
        } else if sent > Self.coalescingStart {
            buffer.removeFirst(sent)
            sent = 0
        }
    }
}
