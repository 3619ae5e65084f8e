// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
package import Host
import Text

/// One end of the socket between badged and another of its programs. The end of badged asks by `Heartbeat` whether the
/// other one lives; the other end answers.
@Loop package final class ProgramChannel {
    package enum Ending: Sendable {
        /// The other end is closed.
        case closed
        /// A message is not as it must be, or too many bytes wait to be sent.
        case violation
        /// The other end does not answer.
        case silent
    }

    /// Where a message ends.
    package enum Framing {
        /// With its packet, on a socket of type SOCK_SEQPACKET. A message has at most this number of bytes.
        case packets(maximum: Int)
        /// Each message follows its length in four bytes, on a socket of type SOCK_STREAM. It has at most `maximum` bytes.
        /// If `admits` returns false for that number, the message waits for `resume`.
        case lengths(maximum: @Loop () -> Int, admits: @Loop (Int) -> Bool)
    }

    private let stream: SocketStream
    private let framing: Framing
    private var heartbeat: Heartbeat?
    private let onMessage: @Loop ([UInt8]) -> Bool
    private let onEnd: @Loop (Ending) -> Void
    /// The bytes of messages that are not complete, with `Framing.lengths`.
    private var received: [UInt8] = []
    /// Whether the message that is being received was admitted, and whether it waits for that.
    private var isAdmitted = false
    private var isPaused = false {
        didSet {
            heartbeat?.isSuspended = isPaused
            stream.isReading = !isPaused
        }
    }

    /// The maximum number of bytes that wait to be sent.
    private static let maximumBacklog = 64 << 20
    /// The maximum number of receipts before others on the loop have their turn.
    private static let maximumTurn = 16

    /// Takes a socket, and closes it at the end, also if this fails.
    /// - Parameters:
    ///   - socket: the socket.
    ///   - framing: where a message ends.
    ///   - program: the program that is asked, for the log.
    ///   - times: those of the questions; nil: this end answers them.
    ///   - onMessage: returns whether the message was allowed. The bytes are wiped afterwards.
    ///   - onEnd: called once, unless `close` is called first.
    /// - Throws: when the kernel does not watch the socket.
    package init(
        _ socket: Int32,
        _ framing: Framing,
        asking program: String,
        _ times: Heartbeat.Times?,
        onMessage: @escaping @Loop ([UInt8]) -> Bool,
        onEnd: @escaping @Loop (Ending) -> Void
    ) throws(SystemError) {
        self.framing = framing
        self.onMessage = onMessage
        self.onEnd = onEnd
        let kind: SocketStream.Kind = if case .packets = framing { .packets } else { .bytes }
        stream = SocketStream(socket, kind)
        try stream.start { [weak self] in self?.handle($0) }
        guard let times else { return }
        heartbeat = Heartbeat(program, times) { [weak self] in
            self?.send(Heartbeat.message)
        } onSilence: { [weak self] in
            self?.end(.silent)
        }
    }

    isolated deinit { close() }

    /// Whether something depends on the other end now.
    package var isNeeded: Bool {
        get { heartbeat?.isNeeded ?? false }
        set { heartbeat?.isNeeded = newValue }
    }

    /// Asks the other end, and returns whether it answers.
    package func answers() async -> Bool { await heartbeat?.answers() ?? true }

    // MARK: Output

    /// The length of a message, which stands before it.
    package nonisolated static func length(of message: [UInt8]) -> [UInt8] {
        withUnsafeBytes(of: UInt32(message.count).bigEndian) { Array($0) }
    }

    /// Sends a message, and wipes it: it may hold a password, a key or a code.
    package func send(_ message: consuming [UInt8]) {
        guard stream.isOpen else { return }
        var message = message
        stream.append(Self.length(of: message))
        stream.append(message)
        message.wipe()
        // After an error the end of the other side is reported by `receive`.
        if stream.backlog > Self.maximumBacklog { end(.violation) } else { stream.flush() }
    }

    /// Says that nothing more will be sent, after which the other end closes.
    package func finish() { stream.finish() }

    // MARK: End

    /// Ends the channel without a call of `onEnd`.
    package func close() {
        guard stream.isOpen else { return }
        stream.close()
        heartbeat?.stop()
        received.wipe()
        received = []
    }

    /// Ends the channel because the other end, which may live, owes an answer.
    package func giveUp() { end(.silent) }

    private func end(_ ending: Ending) {
        guard stream.isOpen else { return }
        close()
        onEnd(ending)
    }

    // MARK: Input

    private func handle(_ events: UInt32) {
        // The kernel would report the end in each turn.
        if isPaused, events & Loop.hungUp != 0 { return end(.closed) }
        if events & Loop.writable != 0 { stream.flush() }
        if events & (Loop.readable | Loop.hungUp) != 0 { receive() }
    }

    private func receive() {
        switch framing {
        case .packets(let maximum):
            // With MSG_TRUNC, recv returns the size of the packet even when the buffer is too small.
            receive(upTo: maximum, flags: Int32(MSG_TRUNC)) { packet in
                if !handle(Array(packet)) { end(.violation) }
            }
        case .lengths:
            receive(upTo: 65_536, flags: 0) { bytes in
                keep(bytes)
                parseMessages()
            }
        }
    }

    private func receive(upTo size: Int, flags: Int32, _ body: (Slice<UnsafeMutableRawBufferPointer>) -> Void) {
        withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { buffer in
            for _ in 0..<Self.maximumTurn where stream.isOpen && !isPaused {
                let count = stream.receive(buffer, flags: flags)
                if count == 0 { return }
                guard count > 0 else { return end(.closed) }
                guard count <= size else { return end(.violation) }
                body(buffer.prefix(count))
                if let base = buffer.baseAddress { explicit_bzero(base, count) }
            }
        }
    }

    /// Handles a message, and wipes it.
    private func handle(_ message: consuming [UInt8]) -> Bool {
        var message = message
        defer { message.wipe() }
        guard message == Heartbeat.message else { return onMessage(message) }
        if let heartbeat { return heartbeat.answered() }
        send(message)
        return true
    }

    /// Asks again whether there is memory for the message that waits.
    package func resume() {
        guard isPaused else { return }
        isPaused = false
        parseMessages()
    }

    /// Appends received bytes. What they outgrow is wiped: a message may hold a share of a secret.
    private func keep(_ bytes: Slice<UnsafeMutableRawBufferPointer>) {
        let count = received.count + bytes.count
        if count > received.capacity { moveReceived(from: 0, capacity: count) }
        received += bytes
    }

    private func moveReceived(from start: Int, capacity: Int) {
        var new: [UInt8] = []
        new.reserveCapacity(capacity)
        received.withUnsafeBufferPointer { new += $0[start...] }
        received.wipe()
        received = new
    }

    private func parseMessages() {
        guard case .lengths(let maximum, let admits) = framing else { return }
        var start = 0
        while stream.isOpen, received.count - start >= 4 {
            let length = received[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= max(maximum(), Heartbeat.message.count) else { return end(.violation) }
            // A sign of life needs no room.
            if !isAdmitted, length > Heartbeat.message.count {
                isAdmitted = admits(length)
                guard isAdmitted else {
                    isPaused = true
                    break
                }
            }
            guard received.count - start >= 4 + length else {
                // Memory for all of the message, so that it is not moved again.
                if start > 0 || received.capacity < 4 + length { moveReceived(from: start, capacity: 4 + length) }
                return
            }
            isAdmitted = false
            let message = Array(received[start + 4..<start + 4 + length])
            start += 4 + length
            guard handle(message) else { return end(.violation) }
        }
        if stream.isOpen, start > 0 { moveReceived(from: start, capacity: received.count - start) }
    }
}
