// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
package import RemoteIFD
import Synchronization

/// One connection between two devices: TCP, TLS and a WebSocket, on a thread of its own.
///
/// The link sends pings, and ends when the other side does not answer them. It never connects again by itself.
package final class LinkThread: Sendable {
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
    package let events: AsyncStream<RemoteLink.Event>
    private let continuation: AsyncStream<RemoteLink.Event>.Continuation
    private let outbox = Mutex(Outbox())
    private let wake: Int32

    private init() {
        (events, continuation) = AsyncStream.makeStream(
            of: RemoteLink.Event.self,
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
        times: RemoteLink.Times = RemoteLink.Times()
    ) -> LinkThread {
        let link = LinkThread()
        link.run(.connect(address, interface: interface), LinkSettings(identity, security, times))
        return link
    }

    /// Serves an accepted connection, and closes its socket at the end.
    package static func serve(
        _ socket: Int32,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: RemoteLink.Times = RemoteLink.Times()
    ) -> LinkThread {
        let link = LinkThread()
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

    private func end(_ ending: RemoteLink.Ending) {
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

    func yield(_ event: RemoteLink.Event) throws(LinkStop) {
        if case .dropped = continuation.yield(event) { throw LinkStop(.violation) }
    }
}
