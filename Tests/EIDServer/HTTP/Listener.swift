// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization

/// A port on loopback, with a thread for the port and one for each connection.
final class Listener: Sendable {
    typealias Handler = @Sendable (HTTPRequest, Handshake) -> HTTPResponse

    /// What a connection gets.
    enum Service: Sendable {
        case tls(TLSContext, Handler)
        /// HTTP without TLS. The handshake that the handler gets is empty.
        case http(Handler)
        /// An HTTP answer without TLS.
        case plain
        /// No bytes.
        case silent
    }

    let port: UInt16
    private let socket: Int32
    private let service: Service
    private let open = Mutex<(isOver: Bool, descriptors: Set<Int32>)>((false, []))

    /// The maximum number of connections at the same time; others are closed at once.
    private static let capacity = 256
    /// The idle timeout of a connection in seconds.
    private static let idleTimeout = 300

    /// Listens on 127.0.0.1, at a free port.
    init(_ service: Service) throws(TLSError) {
        self.service = service
        let bound = try BoundSocket()
        (socket, port) = (bound.descriptor, bound.port)
        listen(socket, 64)
        startThread { [self] in acceptAll() }
    }

    /// Ends the listener and its connections. A second call does nothing.
    func close() {
        open.withLock { state in
            guard !state.isOver else { return }
            state.isOver = true
            for descriptor in state.descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
            shutdown(socket, Int32(SHUT_RDWR))
        }
    }

    /// Closes the socket inside the lock, so that `close` cannot use its number afterwards.
    private func end() {
        open.withLock { state in
            state.isOver = true
            Glibc.close(socket)
        }
    }

    private func acceptAll() {
        defer { end() }
        while true {
            let connection = accept(socket, nil, nil)
            if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
            guard connection >= 0 else { return }
            _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
            let isAccepted = open.withLock { state in
                guard !state.isOver, state.descriptors.count < Self.capacity else { return false }
                state.descriptors.insert(connection)
                return true
            }
            guard isAccepted else {
                Glibc.close(connection)
                continue
            }
            startThread { [self] in
                serve(connection)
                _ = open.withLock { $0.descriptors.remove(connection) }
                Glibc.close(connection)
            }
        }
    }

    private func serve(_ descriptor: Int32) {
        var timeout = timeval(tv_sec: Self.idleTimeout, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var yes: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
        switch service {
        case .tls(let context, let handler):
            // Without a handshake the connection ends.
            guard let connection = try? TLSConnection(context, descriptor) else { return }
            serve(descriptor, connection, connection.handshake, handler)
        case .http(let handler): serve(descriptor, PlainConnection(descriptor), Handshake.none, handler)
        case .plain:
            var buffer = [UInt8](repeating: 0, count: 4096)
            guard recv(descriptor, &buffer, buffer.count, 0) > 0 else { return }
            let answer = HTTPResponse(200).head
            _ = send(descriptor, answer, answer.count, Int32(MSG_NOSIGNAL))
        case .silent:
            var buffer = [UInt8](repeating: 0, count: 4096)
            while recv(descriptor, &buffer, buffer.count, 0) > 0 {}
        }
    }

    private func serve(
        _ descriptor: Int32,
        _ connection: any ServerConnection,
        _ handshake: Handshake,
        _ handler: Handler
    ) {
        var buffer: [UInt8] = []
        while let request = HTTPRequest(from: connection.read, buffer: &buffer, answerEarly: connection.write) {
            let response = handler(request, handshake)
            guard deliver(response, to: request, over: connection) else { return reset(descriptor) }
            if response.closes || request.isLast { break }
        }
        connection.close()
    }

    /// Sends the answer; false when the connection has to be reset.
    private func deliver(
        _ response: HTTPResponse,
        to request: HTTPRequest,
        over connection: any ServerConnection
    ) -> Bool {
        if response.delay > 0 { sleep(response.delay) }
        let body = request.method == "HEAD" ? [] : response.body
        switch response.delivery {
        case .whole: return connection.write(response.head + body)
        case .reset: return false
        case .half:
            _ = connection.write(response.head + body.prefix(body.count / 2))
            return false
        case .drip(let milliseconds):
            guard connection.write(response.head) else { return false }
            return body.allSatisfy { byte in
                usleep(milliseconds * 1000)
                return connection.write([byte])
            }
        }
    }

    /// Makes the next close send a TCP reset.
    private func reset(_ descriptor: Int32) {
        var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    }
}

/// A TCP socket bound to a free port of 127.0.0.1.
struct BoundSocket {
    let descriptor: Int32
    let port: UInt16

    init() throws(TLSError) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw TLSError("no socket") }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound else {
            close(descriptor)
            throw TLSError("no port")
        }
        (self.descriptor, self.port) = (descriptor, UInt16(bigEndian: address.sin_port))
    }
}

/// Runs `body` on a new, detached thread.
func startThread(_ body: @escaping @Sendable () -> Void) {
    final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let start = Unmanaged.passRetained(Start(body))
    var thread = pthread_t()
    let code = pthread_create(
        &thread,
        nil,
        { raw in
            if let raw { Unmanaged<Start>.fromOpaque(raw).takeRetainedValue().body() }
            return nil
        },
        start.toOpaque()
    )
    guard code == 0 else { return start.release() }
    pthread_detach(thread)
}
