// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
package import Host
import Text

/// One end of the socket between badged and the program of a driver, on the loop. The end of badged asks by `Heartbeat`
/// whether the other one lives; the other end answers.
@Loop package final class DriverChannel {
    package enum Ending: Sendable {
        /// The other end is closed, or a message is not as it must be.
        case ended
        /// The other end does not answer.
        case silent
    }

    private let socket: Int32
    private var registration: Loop.Registration?
    /// Messages that did not fit into the socket's buffer.
    private var unsent: [[UInt8]] = []
    private var backlog = 0
    private let onMessage: @Loop ([UInt8]) -> Bool
    private let onEnd: @Loop (Ending) -> Void
    private var heartbeat: Heartbeat?

    /// The maximum number of bytes that wait to be sent.
    private static let maximumBacklog = 64 << 20
    /// The maximum number of messages that are received before others on the loop have their turn.
    private static let maximumTurn = 64

    /// Takes a socket of type SOCK_SEQPACKET, and closes it at the end, also if this fails.
    /// - Parameters:
    ///   - socket: the socket.
    ///   - program: the program that is asked, for the log.
    ///   - times: those of the questions; nil: this end answers them.
    ///   - onMessage: returns whether the message was allowed.
    ///   - onEnd: called once, unless `close` is called first.
    /// - Throws: when the kernel does not watch the socket.
    package init(
        _ socket: Int32,
        asking program: String,
        _ times: Heartbeat.Times?,
        onMessage: @escaping @Loop ([UInt8]) -> Bool,
        onEnd: @escaping @Loop (Ending) -> Void
    ) throws(SystemError) {
        self.socket = socket
        self.onMessage = onMessage
        self.onEnd = onEnd
        registration = try Loop.watch(socket, .read) { [weak self] events in self?.handle(events) }
        guard let times else { return }
        heartbeat = Heartbeat(program, times) { [weak self] in
            self?.send(Heartbeat.message)
        } onSilence: { [weak self] in
            self?.end(.silent)
        }
    }

    isolated deinit {
        close()
        Glibc.close(socket)
    }

    /// Whether something depends on the other end now.
    package var isNeeded: Bool {
        get { heartbeat?.isNeeded ?? false }
        set { heartbeat?.isNeeded = newValue }
    }

    /// Asks the other end, and returns whether it answers.
    package func answers() async -> Bool { await heartbeat?.answers() ?? true }

    /// Sends a message, and wipes it: it may hold a key or a code.
    package func send(_ message: consuming [UInt8]) {
        guard registration != nil else { return }
        backlog += message.count
        unsent.append(message)
        if backlog > Self.maximumBacklog { end(.ended) } else { flush() }
    }

    /// Says that nothing more will be sent, after which the other end closes.
    package func finish() { shutdown(socket, Int32(SHUT_WR)) }

    /// Ends the channel without a call of `onEnd`.
    package func close() {
        registration?.cancel()
        registration = nil
        heartbeat?.stop()
        for index in unsent.indices { unsent[index].wipe() }
        unsent = []
    }

    private func end(_ ending: Ending) {
        guard registration != nil else { return }
        close()
        onEnd(ending)
    }

    private func handle(_ events: UInt32) {
        if events & Loop.writable != 0 { flush() }
        if events & (Loop.readable | Loop.hungUp) != 0 { receive() }
    }

    private func flush() {
        while let message = unsent.first {
            let sent = Glibc.send(socket, message, message.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            if sent < 0, errno == EINTR { continue }
            // After another error the end of the other side is reported by `receive`.
            if sent < 0, errno == EAGAIN { break }
            backlog -= message.count
            unsent[0].wipe()
            unsent.removeFirst()
        }
        registration?.change(unsent.isEmpty ? .read : [.read, .write])
    }

    private func receive() {
        withUnsafeTemporaryAllocation(byteCount: DriverMessage.maximumSize, alignment: 1) { buffer in
            for _ in 0..<Self.maximumTurn where registration != nil {
                // With MSG_TRUNC, recv returns the size of the message even when the buffer is too small.
                let count = recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT | MSG_TRUNC))
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN { return }
                guard count > 0, count <= buffer.count else { return end(.ended) }
                var message = Array(UnsafeRawBufferPointer(buffer).prefix(count))
                if let base = buffer.baseAddress { explicit_bzero(base, count) }
                defer { message.wipe() }
                guard message == Heartbeat.message ? handleHeartbeat() : onMessage(message) else { return end(.ended) }
            }
        }
    }

    /// Takes an answer, or answers.
    private func handleHeartbeat() -> Bool {
        if let heartbeat { return heartbeat.answered() }
        send(Heartbeat.message)
        return true
    }
}
