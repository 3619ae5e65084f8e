// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
package import Host

/// A connected socket on the loop: the bytes that wait to be sent, the events that it waits for, and its end.
///
/// Its owner knows what a message is, and decides when the stream sends and receives. No call waits.
@Loop package final class SocketStream {
    package enum Kind {
        /// SOCK_STREAM.
        case bytes
        /// SOCK_SEQPACKET. Each message is appended behind its length; see `WipedQueue.sendPackets`.
        case packets
    }

    private let descriptor: Int32
    private let kind: Kind
    private let isOwned: Bool
    private var registration: Loop.Registration?
    private var output = WipedQueue()
    package private(set) var isOpen = true

    /// Whether `ready` is called when bytes have arrived.
    package var isReading = true { didSet { updateInterest() } }

    /// Takes over a connected socket.
    /// - Parameters:
    ///   - descriptor: the socket.
    ///   - kind: its type.
    ///   - isOwned: whether it is closed at the end.
    package init(_ descriptor: Int32, _ kind: Kind = .bytes, isOwned: Bool = true) {
        self.descriptor = descriptor
        self.kind = kind
        self.isOwned = isOwned
    }

    isolated deinit { close() }

    /// Calls `ready` with the bits of `Loop` when bytes have arrived, when waiting bytes can be sent, and when the other
    /// side has left.
    /// - Throws: when the kernel does not watch the socket.
    package func start(_ ready: @escaping Loop.Handler) throws(SystemError) {
        registration = try Loop.watch(descriptor, .read, ready)
    }

    // MARK: Output

    /// The number of bytes that wait to be sent.
    package var backlog: Int { output.count }

    /// The allocated memory in bytes.
    package var capacity: Int { output.capacity }

    package func append(_ part: some Collection<UInt8>) { output.append(part) }

    package func append(_ part: some Collection<UInt8>, _ transform: (UInt8) -> UInt8) {
        output.append(part, transform)
    }

    /// Sends as many bytes as the socket accepts; the others when it accepts more.
    /// - Returns: false if the connection is broken. What it has sent before can still be received.
    @discardableResult package func flush() -> Bool {
        guard registration != nil else { return true }
        var isBroken = false
        switch kind {
        case .bytes: isBroken = !output.send(to: descriptor)
        case .packets: output.sendPackets(to: descriptor)
        }
        if isBroken { output.discard() }
        updateInterest()
        return !isBroken
    }

    private func updateInterest() {
        var interest: Loop.Interest = isReading ? .read : []
        if output.count > 0 { interest.insert(.write) }
        registration?.change(interest)
    }

    // MARK: Input

    /// Receives into a buffer. `flags` are those of recv, besides MSG_DONTWAIT.
    /// - Returns: the number of bytes; 0 if nothing waits, and -1 when the other side has closed its half or is lost.
    package func receive(_ buffer: UnsafeMutableRawBufferPointer, flags: Int32 = 0) -> Int {
        guard isOpen else { return -1 }
        var count = 0
        repeat {
            count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT) | flags)
        } while count < 0 && errno == EINTR
        if count < 0, errno == EAGAIN { return 0 }
        return count > 0 ? count : -1
    }

    // MARK: End

    /// Closes the own half: nothing more is sent.
    package func finish() { if isOpen { shutdown(descriptor, Int32(SHUT_WR)) } }

    /// Ends the calls of `ready` and the output, because the other side has left. What it has sent can still be received.
    package func abandon() {
        registration?.cancel()
        registration = nil
        output.discard()
    }

    package func close() {
        guard isOpen else { return }
        isOpen = false
        abandon()
        if isOwned { Glibc.close(descriptor) }
    }
}
