// SPDX-License-Identifier: GPL-3.0-or-later
import CWebSockets

/// A program at `/eID-Kernel`: each of its frames is a line to the daemon, each line of the daemon a frame.
final class WebSocketClient: DaemonLink.Owner {
    private let socket: OpaquePointer
    private let link: DaemonLink
    /// The daemon's side is over; what it said last is still sent.
    private var isEnding = false
    private var isHeldBack = false

    /// Above this many bytes for the daemon the client has to wait.
    private static let highWater = 65_536

    init(_ socket: OpaquePointer, _ link: DaemonLink) {
        (self.socket, self.link) = (socket, link)
        link.owner = self
    }

    /// A piece of a frame has come.
    func received(_ piece: UnsafeRawBufferPointer) {
        let isLast = lws_is_final_fragment(socket) != 0 && lws_remaining_packet_payload(socket) == 0
        link.send(piece, isLast: isLast)
        guard link.backlog > Self.highWater, !isHeldBack else { return }
        isHeldBack = true
        lws_rx_flow_control(socket, 0)
    }

    /// The next frame can go out. False: the connection is to close.
    func writable() -> Bool {
        let isSent = link.withLine { line in Self.write(line, to: socket) }
        switch isSent {
        case .some(false): return false
        case .some(true):
            lws_callback_on_writable(socket)
            return true
        case nil: return !isEnding
        }
    }

    private static func write(_ text: UnsafeRawBufferPointer, to socket: OpaquePointer) -> Bool {
        let room = Int(cwebsockets_room)
        return withUnsafeTemporaryAllocation(byteCount: room + text.count, alignment: 16) { buffer in
            guard let base = buffer.baseAddress else { return false }
            if let source = text.baseAddress { (base + room).copyMemory(from: source, byteCount: text.count) }
            let start = (base + room).assumingMemoryBound(to: UInt8.self)
            return lws_write(socket, start, text.count, LWS_WRITE_TEXT) >= 0
        }
    }

    /// The client is gone.
    func closed() { link.close() }

    // MARK: DaemonLink.Owner

    func linkHasLines(_ link: DaemonLink) { lws_callback_on_writable(socket) }

    func linkIsDrained(_ link: DaemonLink) {
        guard isHeldBack else { return }
        isHeldBack = false
        lws_rx_flow_control(socket, 1)
    }

    func linkEnded(_ link: DaemonLink) {
        isEnding = true
        lws_callback_on_writable(socket)
    }
}
