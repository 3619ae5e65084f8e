// SPDX-License-Identifier: GPL-3.0-or-later
import CWebSockets

/// Serves a WebSocket at `/eID-Kernel`. Each frame is a line for the daemon, and each line of the daemon is a frame.
final class WebSocketClient: DaemonLink.Owner {
    private let socket: OpaquePointer
    private let link: DaemonLink
    /// Whether the daemon has closed the link. Its last lines are still sent.
    private var isEnding = false
    /// Whether reading from the client is paused.
    private var isPaused = false

    /// With more waiting bytes for the daemon than this, reading from the client is paused.
    private static let highWater = 65_536

    init(_ socket: OpaquePointer, _ link: DaemonLink) {
        (self.socket, self.link) = (socket, link)
        link.owner = self
    }

    /// Receives a part of a frame.
    func received(_ part: UnsafeRawBufferPointer) {
        let isLast = lws_is_final_fragment(socket) != 0 && lws_remaining_packet_payload(socket) == 0
        link.send(part, isLast: isLast)
        guard link.backlog > Self.highWater, !isPaused else { return }
        isPaused = true
        lws_rx_flow_control(socket, 0)
    }

    /// Sends the next frame.
    /// - Returns: false if the connection must close.
    func writable() -> Bool {
        switch link.withLine({ Self.write($0, to: socket) }) {
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

    /// Called when the client has closed its connection.
    func closed() { link.close() }

    // MARK: DaemonLink.Owner

    func linkHasBytes(_ link: DaemonLink) { lws_callback_on_writable(socket) }

    func linkIsDrained(_ link: DaemonLink) {
        guard isPaused else { return }
        isPaused = false
        lws_rx_flow_control(socket, 1)
    }

    func linkEnded(_ link: DaemonLink) {
        isEnding = true
        lws_callback_on_writable(socket)
    }
}
