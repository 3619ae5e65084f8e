// SPDX-License-Identifier: GPL-3.0-or-later
import CMicroHTTPD
import Concurrency
import Glibc
import HTTP
import Host

/// A program at the browser port that uses a WebSocket: each text frame is a line for the daemon, and each line of the
/// daemon is a frame. RFC 6455.
@Loop final class WebSocketClient: BrowserLink.Owner {
    /// Closes the socket.
    private let handle: OpaquePointer
    private let link: BrowserLink
    private let closed: @Loop () -> Void
    private let stream: SocketStream
    // A longer line is refused by the daemon, which says so.
    private var parser = WebSocketParser(isMasked: true, limit: .max)
    private var isClosed = false
    /// Whether the last frame, which closes the connection, is on its way.
    private var isEnding = false

    /// With more waiting bytes for the daemon than this, reading from the client is paused.
    private static let highWater = 65_536
    /// With more waiting bytes for the client than this, no lines are taken from the daemon, and nothing is read from the
    /// client: it may send pings and read no answer.
    private static let largestOutgoing = 65_536
    private static let readSize = 16_384
    /// The number of receipts before others on the loop have their turn.
    private static let largestTurn = 16

    /// Takes over an upgraded connection. `closed` is called at its end, when the library has to work.
    init(_ socket: Int32, _ handle: OpaquePointer, _ link: BrowserLink, _ closed: @escaping @Loop () -> Void) {
        stream = SocketStream(socket, isOwned: false)
        self.handle = handle
        self.link = link
        self.closed = closed
    }

    /// Starts to serve, with the bytes that have arrived behind the handshake. They are wiped.
    func start(_ early: UnsafeMutableRawBufferPointer) {
        do throws(SystemError) {
            // The loop keeps the client until the stream is closed.
            try stream.start { self.handle($0) }
        } catch {
            return close()
        }
        link.owner = self
        received(early)
    }

    private func handle(_ events: UInt32) {
        // Nobody is there to answer, and the kernel would report the end in each turn.
        if !mayRead, events & Loop.hungUp != 0 { return close() }
        if events & Loop.writable != 0 { sendLines() }
        if events & (Loop.readable | Loop.hungUp) != 0 { read() }
    }

    // MARK: From the client

    private var mayRead: Bool {
        !isClosed && !isEnding && link.backlog <= Self.highWater && stream.backlog < Self.largestOutgoing
    }

    private func read() {
        withUnsafeTemporaryAllocation(byteCount: Self.readSize, alignment: 1) { buffer in
            for _ in 0..<Self.largestTurn where mayRead {
                let count = stream.receive(buffer)
                if count == 0 { break }
                guard count > 0 else { return close() }
                received(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
            }
        }
        updateInterest()
    }

    /// Parses bytes of the client, and wipes them.
    private func received(_ bytes: UnsafeMutableRawBufferPointer) {
        defer { if let base = bytes.baseAddress { explicit_bzero(base, bytes.count) } }
        do throws(WebSocketError) {
            try parser.parse(bytes) { part in
                guard !isEnding else { return }
                switch part {
                case .message(let part, _, let isLast): link.send(part, isLast: isLast)
                case .ping(let payload): queue(.pong, payload)
                case .pong: break
                // 1005 is never sent: it means that the frame had no code. RFC 6455 7.4.1.
                case .close(let code): end(with: code == 1005 ? 1000 : code)
                }
            }
        } catch {
            end(with: error.code)
        }
    }

    // MARK: To the client

    private func queue(_ opcode: WebSocketWriter.Opcode, _ payload: some Collection<UInt8>) {
        stream.append(WebSocketWriter.header(opcode, count: payload.count))
        stream.append(payload)
        flush()
    }

    /// Sends the lines of the daemon, as long as the socket accepts them.
    private func sendLines() {
        flush()
        while !isClosed, !isEnding, stream.backlog < Self.largestOutgoing {
            guard link.withLine({ queue(.text, $0) }) != nil else { break }
        }
        updateInterest()
    }

    private func flush() {
        guard !isClosed else { return }
        guard stream.flush(), !(isEnding && stream.backlog == 0) else { return close() }
        updateInterest()
    }

    private func updateInterest() {
        stream.isReading = mayRead
    }

    // MARK: End

    /// Ends the connection with a close frame.
    private func end(with code: UInt16) {
        guard !isClosed, !isEnding else { return }
        isEnding = true
        link.close()
        queue(.close, withUnsafeBytes(of: code.bigEndian, Array.init))
    }

    /// Closes the connection at once.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        stream.close()
        link.close()
        cmicrohttpd_close(handle)
        closed()
    }

    // MARK: BrowserLink.Owner

    func linkHasBytes(_ link: BrowserLink) { sendLines() }

    func linkIsDrained(_ link: BrowserLink) { updateInterest() }

    func linkEnded(_ link: BrowserLink) {
        while link.withLine({ queue(.text, $0) }) != nil {}
        // Going away. RFC 6455 7.4.1.
        end(with: 1001)
    }
}
