// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
import Synchronization

/// One connection between two devices: TCP, TLS and a WebSocket, on a thread of its own.
///
/// The link sends pings, and ends when the other side does not answer them. It never connects again by itself.
package final class RemoteLink: Sendable {
    package enum Event: Sendable, Equatable {
        /// The WebSocket is open. `device` is the fingerprint of the other device.
        case opened(device: String)
        /// A text message.
        case message([UInt8])
        /// The last event.
        case ended(Ending)
    }

    package enum Ending: Sendable, Equatable {
        /// One side has closed the WebSocket with this code, 1006 for a cut connection.
        case closed(UInt16)
        /// The code of the pairing is wrong.
        case wrongCode
        /// This side does not trust the certificates of the other one.
        case untrusted
        /// The other side ended the connection before the WebSocket was open.
        case refused
        /// As `refused`, but the other side has proved its key before: it does not accept the certificate of this side.
        case rejected
        /// The other side cannot be reached, or has not answered in time.
        case unreachable
        /// The other side did not answer a ping.
        case silent
        /// The other side violates a protocol or a limit.
        case violation
        /// The system or libssl failed.
        case failed(String)
    }

    /// Time limits in milliseconds; tests pass shorter ones.
    package struct Times: Sendable {
        /// For the TCP connection, then for TLS and the WebSocket handshake together, and for each write.
        package var setUp: Int64 = 5000
        /// Between a pong and the next ping.
        package var ping: Int64 = 5000
        /// Between a ping and its pong.
        package var pong: Int64 = 5000
        /// The delay of an answer, because AusweisApp loses one that arrives sooner. Only a server waits.
        package var answer: Int64 = 1

        package init() {}
    }

    private struct Outbox {
        var frames: [[UInt8]] = []
        var count = 0
        /// The code with which this side closes the WebSocket.
        var closeCode: UInt16?
        var isOver = false
    }

    /// The maximum number of bytes that wait to be sent, and of messages that wait to be handled.
    private static let maximumBacklog = 1 << 20
    private static let maximumMessages = 64

    /// All events, for one consumer. The last one is `ended`, unless too many messages wait.
    package let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let outbox = Mutex(Outbox())
    private let wake: Int32

    private init() {
        (events, continuation) = AsyncStream.makeStream(
            of: Event.self,
            bufferingPolicy: .bufferingOldest(Self.maximumMessages)
        )
        wake = clinux_eventfd()
    }

    deinit { Glibc.close(wake) }

    /// Connects to a device.
    package static func connect(
        to address: RemoteAddress,
        interface: String?,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: Times = Times()
    ) -> RemoteLink {
        let link = RemoteLink()
        link.run(.connect(address, interface: interface), LinkSettings(identity, security, times))
        return link
    }

    /// Serves an accepted connection, and closes its socket at the end.
    package static func serve(
        _ socket: Int32,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: Times = Times()
    ) -> RemoteLink {
        let link = RemoteLink()
        if !link.run(.serve(socket), LinkSettings(identity, security, times)) { Glibc.close(socket) }
        return link
    }

    /// Starts the thread.
    /// - Returns: false if there is none.
    @discardableResult
    private func run(_ start: LinkStart, _ settings: LinkSettings) -> Bool {
        let isStarted = startThread("badged-remote") { [self] in end(LinkWork(self, settings).run(start)) }
        if !isStarted { end(.failed("no thread is left")) }
        return isStarted
    }

    private func end(_ ending: Ending) {
        outbox.withLock { outbox in
            outbox.isOver = true
            outbox.frames = []
        }
        // If too many messages wait, this event is dropped and the consumer only sees the end of the stream.
        continuation.yield(.ended(ending))
        continuation.finish()
    }

    /// Queues a text message.
    package func send(_ message: [UInt8]) {
        outbox.withLock { outbox in
            guard !outbox.isOver, outbox.closeCode == nil else { return }
            outbox.frames.append(message)
            outbox.count += message.count
            if outbox.count > Self.maximumBacklog { outbox.closeCode = 1011 }
        }
        wakeThread()
    }

    /// Closes the WebSocket after the queued messages, or ends a link that is not open yet. 1000 is the normal end.
    package func close(_ code: UInt16 = 1000) {
        outbox.withLock { outbox in
            if outbox.closeCode == nil { outbox.closeCode = code }
        }
        wakeThread()
    }

    private func wakeThread() {
        var one: UInt64 = 1
        _ = Glibc.write(wake, &one, 8)
    }

    // MARK: Calls of the thread

    var wakeDescriptor: Int32 { wake }

    /// The code with which this side wants to close the WebSocket.
    var closeCode: UInt16? { outbox.withLock { $0.closeCode } }

    func takeMessages() -> [[UInt8]] {
        outbox.withLock { outbox in
            defer { (outbox.frames, outbox.count) = ([], 0) }
            return outbox.frames
        }
    }

    func yield(_ event: Event) throws(LinkStop) {
        if case .dropped = continuation.yield(event) { throw LinkStop(.violation) }
    }
}
