// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Text

/// A connection to the daemon for one connection at the browser port. Each link has its own session.
final class DaemonLink {
    /// Receives the events of a link. The owner may close the link in any of these calls.
    protocol Owner: AnyObject {
        /// Called when bytes from the daemon have arrived, possibly complete lines.
        func linkHasBytes(_ link: DaemonLink)
        /// Called when all bytes for the daemon are sent.
        func linkIsDrained(_ link: DaemonLink)
        /// Called when the daemon has closed the link, or when one of the queues is full.
        func linkEnded(_ link: DaemonLink)
    }

    let descriptor: Int32
    weak var owner: (any Owner)?
    /// Asks the event loop for a call of `writable`.
    var requestWritable: () -> Void = {}
    /// Asks the event loop to remove and close the descriptor.
    var requestClose: () -> Void = {}
    private(set) var isOpen = true
    private let incoming = LineBuffer(limit: DaemonLink.capacity)
    private var outgoing = LineQueue()

    /// The largest number of bytes that wait in each direction.
    static let capacity = 2 << 20

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        clinux_set_nonblocking(descriptor)
    }

    // MARK: To the daemon

    /// Bytes that wait for the daemon.
    var backlog: Int { outgoing.count }

    /// Sends a part of a line; the last part ends the line.
    func send(_ part: UnsafeRawBufferPointer, isLast: Bool) {
        guard isOpen else { return }
        outgoing.append(part)
        if isLast { outgoing.endLine() }
        flush()
        if outgoing.count > Self.capacity { end() }
    }

    func send(line: [UInt8]) { line.withUnsafeBytes { send($0, isLast: true) } }

    /// The event loop calls this when the descriptor can be written.
    func writable() {
        flush()
        if isOpen, outgoing.count == 0 { owner?.linkIsDrained(self) }
    }

    private func flush() {
        let descriptor = descriptor
        var isBroken = false
        outgoing.drain { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = Glibc.send(
                    descriptor,
                    bytes.baseAddress.map { $0 + sent },
                    bytes.count - sent,
                    Int32(MSG_NOSIGNAL)
                )
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    isBroken = errno != EAGAIN && errno != EWOULDBLOCK
                    break
                }
                sent += count
            }
            return sent
        }
        if isBroken { end() } else if outgoing.count > 0 { requestWritable() }
    }

    // MARK: From the daemon

    /// Lends the next line of the daemon to `body`. Returns nil if there is none.
    func withLine<T>(_ body: (UnsafeRawBufferPointer) -> T) -> T? {
        guard case .text(let line) = incoming.next() else { return nil }
        return body(line)
    }

    /// The event loop calls this when the descriptor can be read.
    func readable() {
        guard isOpen else { return }
        var isOver = false
        while !isOver {
            let count = incoming.fill { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { break }
            isOver = count <= 0 || incoming.count > Self.capacity
        }
        owner?.linkHasBytes(self)
        if isOver { end() }
    }

    // MARK: End

    private func end() {
        guard isOpen else { return }
        owner?.linkEnded(self)
        close()
    }

    /// Closes the link; the owner gets no further call.
    func close() {
        guard isOpen else { return }
        isOpen = false
        owner = nil
        requestClose()
    }
}
