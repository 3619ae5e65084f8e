// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// A connection to the daemon on behalf of one connection of a browser or another program: a session of its own there.
final class DaemonLink {
    /// What it tells its other side; it may close the link in any of these.
    protocol Owner: AnyObject {
        /// Lines have come.
        func linkHasLines(_ link: DaemonLink)
        /// What was to be sent has left.
        func linkIsDrained(_ link: DaemonLink)
        /// The daemon has closed it, or nobody takes what it says.
        func linkEnded(_ link: DaemonLink)
    }

    let descriptor: Int32
    weak var owner: (any Owner)?
    /// Asks the loop to say when the descriptor can be written.
    var wantsToWrite: () -> Void = {}
    /// Asks the loop to let it go, and to close the descriptor.
    var wantsToClose: () -> Void = {}
    private(set) var isOpen = true
    private var incoming = LineQueue()
    private var outgoing = LineQueue()

    /// Most bytes that wait for a client, and most that wait for the daemon, in each link.
    static let capacity = 2 << 20

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        clinux_set_nonblocking(descriptor)
    }

    // MARK: To the daemon

    var backlog: Int { outgoing.count }

    /// A piece of a line; `isLast`: the line ends here.
    func send(_ piece: UnsafeRawBufferPointer, isLast: Bool) {
        guard isOpen else { return }
        outgoing.append(frame: piece)
        if isLast { outgoing.endLine() }
        flush()
        if outgoing.count > Self.capacity { end() }
    }

    func send(line: [UInt8]) { line.withUnsafeBytes { send($0, isLast: true) } }

    /// The loop says that the descriptor can be written.
    func writable() {
        flush()
        if isOpen, outgoing.count == 0 { owner?.linkIsDrained(self) }
    }

    private func flush() {
        let descriptor = descriptor
        var isBroken = false
        outgoing.drain { rest in
            var gone = 0
            while gone < rest.count {
                let left = rest.count - gone
                let count = Glibc.send(descriptor, rest.baseAddress.map { $0 + gone }, left, Int32(MSG_NOSIGNAL))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    isBroken = errno != EAGAIN && errno != EWOULDBLOCK
                    break
                }
                gone += count
            }
            return gone
        }
        if isBroken { end() } else if outgoing.count > 0 { wantsToWrite() }
    }

    // MARK: From the daemon

    var hasLine: Bool { incoming.hasLine }

    func withLine<T>(_ body: (UnsafeRawBufferPointer) -> T) -> T? { incoming.withLine(body) }

    /// The loop says that the descriptor can be read.
    func readable() {
        guard isOpen else { return }
        let isOver = withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 1) { buffer -> Bool in
            defer { if let base = buffer.baseAddress { explicit_bzero(base, buffer.count) } }
            while incoming.count <= Self.capacity {
                let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
                if count < 0 {
                    if errno == EINTR { continue }
                    return errno != EAGAIN && errno != EWOULDBLOCK
                }
                if count == 0 { return true }
                incoming.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
            return true
        }
        if incoming.hasLine { owner?.linkHasLines(self) }
        if isOver { end() }
    }

    // MARK: End

    private func end() {
        guard isOpen else { return }
        owner?.linkEnded(self)
        close()
    }

    /// From the other side.
    func close() {
        guard isOpen else { return }
        isOpen = false
        owner = nil
        wantsToClose()
    }
}
