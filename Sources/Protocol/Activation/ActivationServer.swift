// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CWebSockets
import Glibc
import Synchronization
import Text
import Wire

/// Serves the browser port: HTTP for browsers, and WebSockets for programs that use the SDK protocol.
///
/// One thread runs the event loop of libwebsockets, which watches the listening sockets, the connections, and the link to
/// the daemon of each connection. All properties but `shared` belong to this thread.
package final class ActivationServer: @unchecked Sendable {
    /// Takes a line; a refusal of a request is not a fault.
    package typealias Log = @Sendable (_ text: String, _ isRefusal: Bool) -> Void

    private let shared = Mutex<(context: OpaquePointer?, isStopped: Bool)>((nil, false))
    private let rules: ActivationRules
    /// Makes a connection to the daemon for a client with this socket. Returns nil if this fails.
    private let connect: (_ client: Int32) -> Int32?
    private let log: Log
    private var host: OpaquePointer?
    private var roles: [OpaquePointer: Role] = [:]
    /// The connections from clients, including those without a role yet.
    private var clients: Set<OpaquePointer> = []
    /// Whether refused connections were logged. This is reset when half of the connections have ended.
    private var hasLoggedRefusal = false

    /// The meaning of a connection of libwebsockets.
    private enum Role {
        case listener(Int32)
        /// A descriptor that ends when the parent process ends.
        case parent
        case link(DaemonLink)
        /// A browser that waits for its answer, and the second connection that reads and writes its socket.
        case browser(BrowserExchange, copy: OpaquePointer)
        case browserCopy(Int32, BrowserExchange, browser: OpaquePointer)
        case webSocket(WebSocketClient)
    }

    /// The largest number of connections at once.
    package static let maximumConnections = 256
    /// The time limit for the request of a connection, in seconds.
    private let requestTimeout: UInt32
    private static let name: StaticString = "badged"

    package init(
        _ rules: ActivationRules,
        requestTimeout: UInt32 = 10,
        connect: @escaping @Sendable (_ client: Int32) -> Int32?,
        log: @escaping Log
    ) {
        (self.rules, self.requestTimeout, self.connect, self.log) = (rules, requestTimeout, connect, log)
    }

    /// Serves until `stop`, or until the descriptor `parent` ends, whose other end the parent process holds.
    ///
    /// `prepare` runs when libwebsockets has opened its files, and before it reads the first byte of a client.
    /// - Returns: false if the server cannot start, or `prepare` returns false.
    package func run(listeners: [Int32], parent: Int32? = nil, prepare: () -> Bool = { true }) -> Bool {
        lws_set_log_level(Int32(LLL_ERR)) { _, text in
            guard let text, ActivationServer.mayLog() else { return }
            // The line of the library has a line end, but no priority for the journal.
            let line =
                Array("<3>badged-activation: ".utf8)
                + Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
            _ = Glibc.write(2, line, line.count)
        }
        let protocols = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
        protocols.initialize(repeating: lws_protocols(), count: 2)
        defer { protocols.deallocate() }
        protocols[0].name = UnsafeRawPointer(Self.name.utf8Start).assumingMemoryBound(to: CChar.self)
        protocols[0].callback = { socket, reason, _, bytes, count in
            guard let socket, let raw = lws_context_user(lws_get_context(socket)) else { return 0 }
            let server = Unmanaged<ActivationServer>.fromOpaque(raw).takeUnretainedValue()
            if reason == LWS_CALLBACK_HTTP_CONFIRM_UPGRADE {
                // Here `bytes` is a C string, and `count` is not its length.
                return server.confirmUpgrade(
                    socket,
                    to: bytes.map { String(cString: $0.assumingMemoryBound(to: CChar.self)) }
                )
            }
            return server.handle(reason, socket, UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count))
        }
        var info = lws_context_creation_info()
        info.port = CONTEXT_PORT_NO_LISTEN_SERVER
        info.protocols = UnsafePointer(protocols)
        info.user = Unmanaged.passUnretained(self).toOpaque()
        info.fd_limit_per_thread = 4096
        info.max_http_header_data2 = ActivationRequest.maximumHead
        info.timeout_secs = requestTimeout
        info.timeout_secs_ah_idle = requestTimeout
        guard let context = lws_create_context(&info) else { return false }
        defer {
            shared.withLock { $0.context = nil }
            lws_context_destroy(context)
        }
        guard prepare() else { return false }
        host = lws_get_vhost_by_name(context, "default")
        for listener in listeners {
            clinux_set_nonblocking(listener)
            guard adopt(listener, as: .listener(listener)) != nil else { return false }
        }
        if let parent, adopt(parent, as: .parent) == nil { return false }
        shared.withLock { $0.context = context }
        while !shared.withLock({ $0.isStopped }), lws_service(context, 0) >= 0 {}
        return true
    }

    /// Ends `run`. Any thread may call this.
    package func stop() {
        shared.withLock { shared in
            shared.isStopped = true
            if let context = shared.context { lws_cancel_service(context) }
        }
    }

    /// Limits the error lines of libwebsockets, because clients can cause them.
    private static let lineLimit = Mutex(LineLimit())
    private static func mayLog() -> Bool { lineLimit.withLock { $0.mayWrite(at: time(nil)) } }

    /// Passes a descriptor to libwebsockets, which watches the descriptor and closes it at the end.
    private func adopt(_ descriptor: Int32, as role: Role) -> OpaquePointer? {
        var number = lws_sock_file_fd_type()
        number.filefd = descriptor
        guard let socket = lws_adopt_descriptor_vhost(host, LWS_ADOPT_RAW_FILE_DESC, number, nil, nil) else {
            return nil
        }
        roles[socket] = role
        return socket
    }

    /// Closes a connection later, because callbacks of other connections must not close it immediately.
    private static func closeSoon(_ socket: OpaquePointer) {
        lws_set_timeout(socket, PENDING_TIMEOUT_KILLED_BY_PARENT, Int32(LWS_TO_KILL_ASYNC))
    }

    // MARK: Callbacks; the result -1 closes the connection

    private func handle(
        _ reason: lws_callback_reasons,
        _ socket: OpaquePointer,
        _ bytes: UnsafeRawBufferPointer
    ) -> Int32 {
        switch reason {
        case LWS_CALLBACK_RAW_RX_FILE: return readable(socket)
        case LWS_CALLBACK_RAW_WRITEABLE_FILE: return writable(socket)
        case LWS_CALLBACK_RAW_CLOSE_FILE: closed(socket)
        // The library turns a CONNECT request into a raw stream without a timeout.
        case LWS_CALLBACK_RAW_ADOPT, LWS_CALLBACK_RAW_CONNECTED, LWS_CALLBACK_RAW_RX: return -1
        case LWS_CALLBACK_HTTP: return answer(socket)
        case LWS_CALLBACK_CLOSED_HTTP, LWS_CALLBACK_CLOSED: closed(socket)
        case LWS_CALLBACK_WSI_DESTROY: destroyed(socket)
        case LWS_CALLBACK_ESTABLISHED:
            guard let link = makeLink(for: socket) else { return -1 }
            roles[socket] = .webSocket(WebSocketClient(socket, link))
        case LWS_CALLBACK_RECEIVE:
            if case .webSocket(let client) = roles[socket] { client.received(bytes) }
        case LWS_CALLBACK_SERVER_WRITEABLE:
            if case .webSocket(let client) = roles[socket], !client.writable() { return -1 }
        default: break
        }
        return 0
    }

    private func readable(_ socket: OpaquePointer) -> Int32 {
        switch roles[socket] {
        case .listener(let listener): acceptClients(listener)
        case .link(let link):
            link.readable()
            if !link.isOpen { return -1 }
        // The parent sends nothing, so a readable descriptor means that the parent has ended.
        case .parent: shared.withLock { $0.isStopped = true }
        case .browserCopy(let descriptor, _, _): if !isConnected(descriptor) { return -1 }
        case .browser, .webSocket, nil: break
        }
        return 0
    }

    private func writable(_ socket: OpaquePointer) -> Int32 {
        switch roles[socket] {
        case .link(let link):
            guard link.isOpen else { return -1 }
            link.writable()
        case .browserCopy(let descriptor, let exchange, _):
            switch exchange.send(to: descriptor) {
            case .blocked: lws_callback_on_writable(socket)
            case .idle: break
            case .ended: return -1
            }
        case .listener, .parent, .browser, .webSocket, nil: break
        }
        return 0
    }

    private func closed(_ socket: OpaquePointer) {
        switch roles.removeValue(forKey: socket) {
        case .browser(let exchange, let copy):
            exchange.close()
            if roles[copy] != nil { Self.closeSoon(copy) }
        case .browserCopy(_, let exchange, let browser):
            exchange.close()
            if roles[browser] != nil { Self.closeSoon(browser) }
        case .webSocket(let client): client.closed()
        case .link(let link): link.close()
        case .parent: shared.withLock { $0.isStopped = true }
        case .listener, nil: break
        }
    }

    private func destroyed(_ socket: OpaquePointer) {
        clients.remove(socket)
        if clients.count < Self.maximumConnections / 2 { hasLoggedRefusal = false }
    }

    // MARK: Connections

    private func acceptClients(_ listener: Int32) {
        for _ in 0..<64 {
            let client = clinux_accept(listener)
            guard client >= 0 else { return }
            guard clients.count < Self.maximumConnections else {
                if !hasLoggedRefusal { log("connections are refused: the limit is \(Self.maximumConnections)", false) }
                hasLoggedRefusal = true
                close(client)
                continue
            }
            clinux_tcp_nodelay(client)
            var number = lws_sock_file_fd_type()
            number.sockfd = client
            // On failure the library closes the socket.
            if let socket = lws_adopt_descriptor_vhost(host, Self.http, number, nil, nil) { clients.insert(socket) }
        }
    }

    private static let http = lws_adoption_type(LWS_ADOPT_HTTP.rawValue | LWS_ADOPT_SOCKET.rawValue)

    private func makeLink(for client: OpaquePointer) -> DaemonLink? {
        guard let descriptor = connect(lws_get_socket_fd(client)) else {
            log("the daemon accepts no connection", false)
            return nil
        }
        let link = DaemonLink(descriptor)
        guard let socket = adopt(descriptor, as: .link(link)) else {
            close(descriptor)
            return nil
        }
        link.requestWritable = { lws_callback_on_writable(socket) }
        link.requestClose = { Self.closeSoon(socket) }
        return link
    }

    // MARK: Browsers that wait

    /// Adopts a second descriptor of a browser's socket, which serves the browser from now on.
    ///
    /// libwebsockets 4.1 does not read a connection that waits for its answer. If the browser then disconnects, or has
    /// sent more than its request, the library calls poll(2) in an endless loop. So the library must not watch the
    /// connection itself.
    /// - Returns: nil if the limit of connections is reached.
    private func adoptCopy(of browser: OpaquePointer, _ exchange: BrowserExchange) -> OpaquePointer? {
        lws_rx_flow_control(browser, 0)
        let descriptor = fcntl(lws_get_socket_fd(browser), F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        guard let copy = adopt(descriptor, as: .browserCopy(descriptor, exchange, browser: browser)) else {
            close(descriptor)
            return nil
        }
        return copy
    }

    /// Returns whether a browser is still connected. Bytes after its request are dropped.
    private func isConnected(_ descriptor: Int32) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return count > 0 || count < 0 && (errno == EAGAIN || errno == EINTR)
    }

    // MARK: HTTP

    private func answer(_ socket: OpaquePointer) -> Int32 {
        let member: JSON.Member
        switch rules.decide(ActivationRequest(socket, isWebSocket: false)) {
        case .answer(let answer):
            write(answer, to: socket)
            return -1
        case .refuse(let answer, let reason):
            refuse(answer, reason, socket)
            return -1
        case .upgrade: return -1
        case .authenticate(let url): member = .init("tcTokenURL", .string(url))
        case .showUserInterface(let module): member = .init("showUI", .string(module))
        }
        guard let link = makeLink(for: socket) else {
            write(.end(.failed, rules.identity), to: socket)
            return -1
        }
        // There is no time limit for the user.
        lws_set_timeout(socket, NO_PENDING_TIMEOUT, 0)
        let exchange = BrowserExchange(link, rules.identity)
        guard let copy = adoptCopy(of: socket, exchange) else {
            link.close()
            return -1
        }
        roles[socket] = .browser(exchange, copy: copy)
        exchange.begin(member) { lws_callback_on_writable(copy) }
        return 0
    }

    /// Decides about a request to upgrade the connection to the protocol `name`; the result 0 allows it.
    private func confirmUpgrade(_ socket: OpaquePointer, to name: String?) -> Int32 {
        let isWebSocket = name?.lowercased() == "websocket"
        switch rules.decide(ActivationRequest(socket, isWebSocket: isWebSocket)) {
        case .upgrade where isWebSocket: return 0
        case .answer(let answer):
            write(answer, to: socket)
            return 1
        case .refuse(let answer, let reason):
            refuse(answer, reason, socket)
            return 1
        case .upgrade, .authenticate, .showUserInterface: return -1
        }
    }

    /// Any web page can cause these lines, so their number is limited.
    private func refuse(_ answer: HTTPAnswer, _ reason: String, _ socket: OpaquePointer) {
        if Self.mayLog() { log(reason, true) }
        write(answer, to: socket)
    }

    private func write(_ answer: HTTPAnswer, to socket: OpaquePointer) {
        let room = Int(cwebsockets_room)
        let bytes = answer.bytes
        var buffer = [UInt8](repeating: 0, count: room) + bytes
        buffer.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return }
            _ = lws_write(socket, base + room, bytes.count, LWS_WRITE_HTTP_HEADERS)
        }
    }
}
