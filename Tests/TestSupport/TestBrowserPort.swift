// SPDX-License-Identifier: GPL-3.0-or-later
package import Activation
import CLinux
package import Concurrency
import Glibc
package import Host
import Server
import Synchronization

/// The real browser port of a test server on a free TCP port, with clients that connect to it.
@Loop package final class TestBrowserPort {
    nonisolated package let port: UInt16
    private let activation: ActivationServer
    private let lines: Lines

    private final class Lines: Sendable {
        private let all = Mutex<[String]>([])
        func withLock<Result: Sendable>(_ body: (inout sending [String]) -> sending Result) -> Result {
            all.withLock(body)
        }
    }

    /// The lines of its log.
    package var logged: [String] { lines.withLock { $0 } }

    nonisolated package static let identity = ActivationIdentity(
        name: "badged",
        version: "1.2.3",
        fields: [("Name", "badged"), ("Implementation-Version", "1.2.3")]
    )

    /// Starts a browser port; `serve` gets the daemon's end of each connection and the user of its client. `user` plays
    /// other users than this one: it gets the port of a client. With `isRefused` there is no
    /// connection to the daemon.
    package init(
        origins: Set<String> = [],
        requestTimeout: UInt32 = 10,
        user: (@Sendable (UInt16) -> UInt32?)? = nil,
        isRefused: Bool = false,
        serve: @escaping @Loop @Sendable (Int32, UInt32?) -> Void
    ) throws {
        let (listener, port) = try LoopbackSocket.listen(backlog: 512)
        self.port = port
        let lines = Lines()
        self.lines = lines
        let rules = ActivationRules(origins: origins, port: port, identity: Self.identity)
        let activation = ActivationServer(
            rules,
            requestTimeout: requestTimeout,
            user: { client in
                guard let peer = LoopbackClient(socket: client) else { return nil }
                guard let user else { return peer.user(connectedTo: port) }
                return user(UInt16(peer.bytes[0]) << 8 | UInt16(peer.bytes[1]))
            },
            connect: { client in
                let uid = LoopbackClient(socket: client)?.user(connectedTo: port)
                guard !isRefused, let pair = try? UnixSocket.pair() else { return nil }
                clinux_set_nonblocking(pair.1)
                serve(pair.1, uid)
                return pair.0
            },
            log: { text, isRefusal in lines.withLock { $0.append((isRefusal ? "refusal: " : "") + text) } }
        )
        self.activation = activation
        guard activation.start(listeners: [listener]) else { throw SystemError("MHD_start_daemon") }
    }

    /// Starts a browser port whose connections a test server serves.
    package convenience init(
        _ server: TestServer,
        origins: Set<String> = [],
        permissions: Permissions = [.readers, .cards, .activate]
    ) throws {
        try self.init(origins: origins) { server.server.serve($0, permissions, from: "test port", uid: $1) }
    }

    isolated deinit { activation.stop() }

    /// Connects a client through a WebSocket; each line is sent as a frame and each frame is received as a line.
    package func connect() async throws -> TestClient {
        let (port, socket) = (port, try Self.dial(port))
        let (answer, early) = try await Self.result { try Self.upgrade(socket, port) }
        guard answer.hasPrefix("HTTP/1.1 101 ") else { throw SystemError("no WebSocket: \(answer)") }
        let pair = try UnixSocket.pair()
        let (frames, lines) = (SharedDescriptor(socket), SharedDescriptor(pair.1))
        _ = startThread("to-port") { Self.forwardLines(lines, to: frames) }
        _ = startThread("from-port") { Self.forwardFrames(frames, early, to: lines) }
        clinux_set_nonblocking(pair.0)
        return try TestClient(socket: pair.0)
    }

    /// Opens a WebSocket, and returns its socket, which the caller closes.
    nonisolated package static func upgraded(_ port: UInt16) async throws -> Int32 {
        try await result {
            let socket = try dial(port)
            let (answer, _) = try upgrade(socket, port)
            guard answer.hasPrefix("HTTP/1.1 101 ") else { throw SystemError("no WebSocket: \(answer)") }
            return socket
        }
    }

    // MARK: Plain HTTP

    /// Runs a blocking exchange on a separate thread.
    nonisolated package static func answer(_ exchange: @escaping @Sendable () throws -> String) async throws -> String {
        try await bytes { Array(try exchange().utf8) }.text
    }

    nonisolated package static func bytes(_ exchange: @escaping @Sendable () throws -> [UInt8]) async throws -> [UInt8]
    {
        try await result(exchange)
    }

    private nonisolated static func result<Value: Sendable>(
        _ exchange: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            _ = startThread("exchange") { continuation.resume(with: Result(catching: exchange)) }
        }
    }

    /// Sends a request and returns all bytes until the port closes the connection.
    nonisolated package func exchange(_ request: String) throws -> String {
        try Self.exchange(request, port: port)
    }

    /// Sends a request and returns its socket, which the caller closes.
    nonisolated package static func begin(_ request: String, port: UInt16) throws -> Int32 {
        try begin(Array(request.utf8), port: port)
    }

    private nonisolated static func begin(_ request: [UInt8], port: UInt16) throws -> Int32 {
        let socket = try dial(port)
        try write(request, to: socket)
        return socket
    }

    nonisolated package static func exchange(_ request: String, port: UInt16) throws -> String {
        try exchange(Array(request.utf8), port: port).text
    }

    nonisolated package static func exchange(_ request: [UInt8], port: UInt16) throws -> [UInt8] {
        let socket = try begin(request, port: port)
        defer { close(socket) }
        var answer: [UInt8] = []
        while let piece = BlockingSocket.receive(from: socket) { answer += piece }
        return answer
    }

    /// Sends a GET request and returns all bytes until the port closes the connection.
    nonisolated package func get(_ target: String, headers: [String] = []) throws -> String {
        let lines = ["GET \(target) HTTP/1.1", "Host: 127.0.0.1:\(port)"] + headers + ["", ""]
        return try exchange(lines.joined(separator: "\r\n"))
    }

    nonisolated package static let upgradeHeaders = [
        "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]

    // MARK: Sockets

    private nonisolated static func upgrade(_ socket: Int32, _ port: UInt16) throws -> (String, [UInt8]) {
        let lines = ["GET /eID-Kernel HTTP/1.1", "Host: localhost:\(port)"] + upgradeHeaders + ["", ""]
        try write(Array(lines.joined(separator: "\r\n").utf8), to: socket)
        var head: [UInt8] = []
        while let piece = BlockingSocket.receive(from: socket) {
            head += piece
            if let end = head.firstRange(of: Array("\r\n\r\n".utf8)) {
                return (String(decoding: head[..<end.lowerBound], as: UTF8.self), Array(head[end.upperBound...]))
            }
        }
        return (String(decoding: head, as: UTF8.self), [])
    }

    private nonisolated static func dial(_ port: UInt16) throws -> Int32 {
        let descriptor = try LoopbackSocket.connect(port: port)
        clinux_tcp_nodelay(descriptor)
        return descriptor
    }

    private nonisolated static func write(_ bytes: [UInt8], to socket: Int32) throws {
        guard BlockingSocket.send(bytes, to: socket) else { throw SystemError("send") }
    }

    // MARK: RFC 6455

    private nonisolated static func forwardLines(_ source: SharedDescriptor, to frames: SharedDescriptor) {
        var buffer: [UInt8] = []
        while let piece = BlockingSocket.receive(from: source.number) {
            buffer += piece
            while let end = buffer.firstIndex(of: 0x0A) {
                guard BlockingSocket.send(frame(Array(buffer[..<end])), to: frames.number) else { return }
                buffer.removeFirst(end + 1)
            }
        }
        frames.shutDown()
    }

    /// Returns a masked text frame.
    private nonisolated static func frame(_ payload: [UInt8]) -> [UInt8] {
        let mask: [UInt8] = [0x12, 0x34, 0x56, 0x78]
        var head: [UInt8] = [0x81]
        switch payload.count {
        case ..<126: head.append(0x80 | UInt8(payload.count))
        case ..<65_536: head += [0xFE, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default:
            head.append(0xFF)
            head += (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
        }
        return head + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
    }

    private nonisolated static func forwardFrames(
        _ frames: SharedDescriptor,
        _ early: [UInt8],
        to target: SharedDescriptor
    ) {
        var buffer = early
        defer {
            frames.shutDown()
            target.shutDown()
        }
        while true {
            while let (kind, payload, length) = next(in: buffer) {
                buffer.removeFirst(length)
                if kind == 8 { return }
                if kind == 1, !BlockingSocket.send(payload + [0x0A], to: target.number) { return }
            }
            guard let piece = BlockingSocket.receive(from: frames.number) else { return }
            buffer += piece
        }
    }

    private nonisolated static func next(in buffer: [UInt8]) -> (kind: UInt8, payload: [UInt8], length: Int)? {
        guard buffer.count >= 2 else { return nil }
        let short = Int(buffer[1] & 0x7F)
        let extra = short == 126 ? 2 : short == 127 ? 8 : 0
        guard buffer.count >= 2 + extra else { return nil }
        let size = extra == 0 ? short : buffer[2..<2 + extra].reduce(0) { $0 << 8 | Int($1) }
        guard buffer.count >= 2 + extra + size else { return nil }
        return (buffer[0] & 0x0F, Array(buffer[(2 + extra)..<(2 + extra + size)]), 2 + extra + size)
    }
}

extension [UInt8] {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}
