// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Text

/// How both sides of a connection authenticate each other.
package enum LinkSecurity: Sendable {
    /// By the code that one device shows and the user types at the other: its digits. RSA-PSK, RFC 4279.
    ///
    /// With `device` only the device with this fingerprint is accepted, before it learns anything about the code.
    case pairing(code: SecretBox, device: String? = nil)
    /// By the fingerprints of the devices that are trusted.
    case paired(trusted: Set<String>)

    /// Whether a device with this fingerprint may open the link.
    func allows(_ device: String) -> Bool {
        switch self {
        case .pairing(_, nil): device.utf8.count == 64 && Hex.decode(device) != nil
        case .pairing(_, let expected?): device == expected
        case .paired(let trusted): trusted.contains(device)
        }
    }
}

/// One connection between two devices, in a run of badged-network: TCP, TLS and a WebSocket.
///
/// The link sends pings, and ends when the other side does not answer them. It never connects again by itself.
@Loop package final class RemoteLink {
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

    /// The maximum number of messages that wait to be handled.
    package nonisolated static let maximumMessages = 64

    /// All events, for one consumer. The last one is `ended`, unless too many messages wait.
    package nonisolated let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let order: @Loop (Order) -> Void

    enum Order {
        case message([UInt8])
        case close(UInt16)
    }

    /// `order` sends what this side wants to badged-network.
    init(_ order: @escaping @Loop (Order) -> Void) {
        (events, continuation) = AsyncStream.makeStream(
            of: Event.self,
            bufferingPolicy: .bufferingOldest(Self.maximumMessages)
        )
        self.order = order
    }

    /// Queues a text message.
    package func send(_ message: [UInt8]) { order(.message(message)) }

    /// Closes the WebSocket after the queued messages, or ends a link that is not open yet. 1000 is the normal end.
    package func close(_ code: UInt16 = 1000) { order(.close(code)) }

    /// Passes an event on.
    /// - Returns: false if too many messages wait.
    func yield(_ event: Event) -> Bool {
        if case .dropped = continuation.yield(event) { return false }
        if case .ended = event { continuation.finish() }
        return true
    }

    /// Ends the events.
    func finish(_ ending: Ending) {
        continuation.yield(.ended(ending))
        continuation.finish()
    }
}
