// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import Text

/// A connection to the daemon for one connection at the browser port. Each link has its own session.
@Loop final class BrowserLink {
    /// Receives the events of a link. The owner may close the link in any of these calls.
    @Loop protocol Owner: AnyObject {
        /// Called when bytes from the daemon have arrived, possibly complete lines.
        func linkHasBytes(_ link: BrowserLink)
        /// Called when all bytes for the daemon are sent.
        func linkIsDrained(_ link: BrowserLink)
        /// Called when the daemon has closed the link, or when one of the queues is full.
        func linkEnded(_ link: BrowserLink)
    }

    weak var owner: (any Owner)?
    private let stream: SocketStream
    private let incoming = LineBuffer(limit: BrowserLink.capacity)

    /// The largest number of bytes that wait in each direction.
    static let capacity = 2 << 20

    /// Owns the descriptor from now on, also if it throws.
    init(_ descriptor: Int32) throws(SystemError) {
        stream = SocketStream(descriptor)
        try stream.start { [weak self] events in self?.handle(events) }
    }

    private func handle(_ events: UInt32) {
        if events & Loop.writable != 0 {
            flush()
            if stream.isOpen, backlog == 0 { owner?.linkIsDrained(self) }
        }
        if events & (Loop.readable | Loop.hungUp) != 0 { read() }
    }

    // MARK: To the daemon

    /// Bytes that wait for the daemon.
    var backlog: Int { stream.backlog }

    /// Sends a part of a line; the last part ends the line. A line end in the part becomes a tab: JSON allows a tab
    /// between tokens, and neither in a string.
    func send(_ part: UnsafeRawBufferPointer, isLast: Bool) {
        guard stream.isOpen else { return }
        stream.append(part, Self.withoutLineEnd)
        if isLast { stream.append([0x0A]) }
        flush()
        if backlog > Self.capacity { end() }
    }

    nonisolated static func withoutLineEnd(_ byte: UInt8) -> UInt8 { byte == 0x0A || byte == 0x0D ? 0x09 : byte }

    func send(line: [UInt8]) { line.withUnsafeBytes { send($0, isLast: true) } }

    private func flush() { if !stream.flush() { end() } }

    // MARK: From the daemon

    /// Lends the next line of the daemon to `body`. Returns nil if there is none.
    func withLine<T>(_ body: (UnsafeRawBufferPointer) -> T) -> T? {
        guard case .text(let line) = incoming.next() else { return nil }
        return body(line)
    }

    private func read() {
        guard stream.isOpen else { return }
        var isOver = false
        while !isOver {
            let count = incoming.fill { stream.receive($0) }
            if count == 0 { break }
            isOver = count < 0 || incoming.count > Self.capacity
        }
        owner?.linkHasBytes(self)
        if isOver { end() }
    }

    // MARK: End

    private func end() {
        guard stream.isOpen else { return }
        owner?.linkEnded(self)
        close()
    }

    /// Closes the link; the owner gets no further call.
    func close() {
        stream.close()
        owner = nil
    }
}
