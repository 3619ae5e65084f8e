// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CWebSockets
import Glibc
import Synchronization
import Text
import Wire

/// The door for browsers, and for programs that speak the SDK over a WebSocket. One thread, in which libwebsockets waits
/// for everything: the listening sockets, the connections, and the daemon's side of each.
package final class ActivationServer: @unchecked Sendable {
    package typealias Log = @Sendable (String) -> Void

    /// Everything else belongs to the thread of `run`.
    private let shared = Mutex<(context: OpaquePointer?, isOver: Bool)>((nil, false))
    private let rules: ActivationRules
    /// Makes a connection to the daemon; nil when it cannot.
    private let connect: () -> Int32?
    private let log: Log
    private var context: OpaquePointer?
    private var host: OpaquePointer?
    private var roles: [OpaquePointer: Role] = [:]
    /// Connections from outside, whatever has come of them yet.
    private var clients: Set<OpaquePointer> = []
    /// That a connection was refused has been said, and there has not been much room since.
    private var isRefusalKnown = false

    private enum Role {
        case listener(Int32)
        /// Its end is ours.
        case life(Int32)
        case link(DaemonLink)
        case browser(BrowserExchange)
        case webSocket(WebSocketClient)
        /// Another number of the descriptor of a browser that waits, and the browser.
        case waiting(Int32, OpaquePointer)
    }

    /// Most connections at once.
    package static let maximumConnections = 256
    /// The time that a connection has for its request.
    private let headSeconds: UInt32
    /// A TcToken URL is long.
    private static let maximumHead: UInt32 = 16_384
    private static let name: StaticString = "badged"

    package init(
        _ rules: ActivationRules,
        headSeconds: UInt32 = 10,
        connect: @escaping @Sendable () -> Int32?,
        log: @escaping Log
    ) {
        (self.rules, self.headSeconds, self.connect, self.log) = (rules, headSeconds, connect, log)
    }

    /// Serves until `stop`, or until `life` ends, a descriptor that the caller's parent holds open.
    /// - Returns: false when it could not begin.
    package func run(listeners: [Int32], life: Int32? = nil) -> Bool {
        lws_set_log_level(Int32(LLL_ERR)) { _, text in
            guard let text, ActivationServer.mayLog() else { return }
            // Priority for the journal; the library ends its lines itself.
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
                // The name comes as a string of C, without its length.
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
        info.max_http_header_data2 = Self.maximumHead
        info.timeout_secs = headSeconds
        info.timeout_secs_ah_idle = headSeconds
        guard let made = lws_create_context(&info) else { return false }
        defer {
            shared.withLock { $0.context = nil }
            lws_context_destroy(made)
        }
        context = made
        host = lws_get_vhost_by_name(made, "default")
        for listener in listeners {
            clinux_set_nonblocking(listener)
            guard adopt(listener, as: .listener(listener)) != nil else { return false }
        }
        if let life, adopt(life, as: .life(life)) == nil { return false }
        shared.withLock { $0.context = made }
        while !shared.withLock({ $0.isOver }), lws_service(made, 0) >= 0 {}
        return true
    }

    /// Of the library's lines, which are up to whoever connects.
    private static let lineLimit = Mutex(LineLimit())

    private static func mayLog() -> Bool { lineLimit.withLock { $0.mayWrite(at: time(nil)) } }

    /// From any thread.
    package func stop() {
        shared.withLock { shared in
            shared.isOver = true
            if let context = shared.context { lws_cancel_service(context) }
        }
    }

    /// Gives a descriptor to the library, which closes it in the end.
    private func adopt(_ descriptor: Int32, as role: Role) -> OpaquePointer? {
        var number = lws_sock_file_fd_type()
        number.filefd = descriptor
        guard let socket = lws_adopt_descriptor_vhost(host, LWS_ADOPT_RAW_FILE_DESC, number, nil, nil) else {
            return nil
        }
        roles[socket] = role
        return socket
    }

    // MARK: Callbacks

    private func handle(
        _ reason: lws_callback_reasons,
        _ socket: OpaquePointer,
        _ bytes: UnsafeRawBufferPointer
    ) -> Int32 {
        switch reason {
        case LWS_CALLBACK_RAW_RX_FILE: return readable(socket)
        case LWS_CALLBACK_RAW_WRITEABLE_FILE: return writable(socket)
        case LWS_CALLBACK_RAW_CLOSE_FILE: closed(socket)
        // CONNECT would make it a stream of bytes, without a time limit.
        case LWS_CALLBACK_RAW_ADOPT, LWS_CALLBACK_RAW_CONNECTED, LWS_CALLBACK_RAW_RX: return -1
        case LWS_CALLBACK_HTTP: return answer(socket)
        case LWS_CALLBACK_CLOSED_HTTP, LWS_CALLBACK_CLOSED: closed(socket)
        case LWS_CALLBACK_WSI_DESTROY: forget(socket)
        case LWS_CALLBACK_ESTABLISHED:
            guard let link = makeLink() else { return -1 }
            roles[socket] = .webSocket(WebSocketClient(socket, link))
        case LWS_CALLBACK_RECEIVE:
            if case .webSocket(let client) = roles[socket] { client.received(bytes) }
        case LWS_CALLBACK_SERVER_WRITEABLE:
            if case .webSocket(let client) = roles[socket], !client.writable() { return -1 }
        default: break
        }
        return 0
    }

    private func closed(_ socket: OpaquePointer) {
        switch roles.removeValue(forKey: socket) {
        case .browser(let exchange): exchange.closed()
        case .webSocket(let client): client.closed()
        case .link(let link): link.close()
        case .life: shared.withLock { $0.isOver = true }
        case .waiting(_, let browser):
            if case .browser(let exchange) = roles[browser] { exchange.letGo() }
        case .listener, nil: break
        }
    }

    private func forget(_ socket: OpaquePointer) {
        clients.remove(socket)
        if clients.count < Self.maximumConnections / 2 { isRefusalKnown = false }
    }

    private func readable(_ socket: OpaquePointer) -> Int32 {
        switch roles[socket] {
        case .listener(let listener): acceptClients(listener)
        case .link(let link):
            link.readable()
            if !link.isOpen { return -1 }
        case .life:
            // Nothing is ever sent: it is the end.
            shared.withLock { $0.isOver = true }
        case .waiting(let descriptor, let browser): return stays(descriptor) ? 0 : end(browser)
        case .browser, .webSocket, nil: break
        }
        return 0
    }

    private func writable(_ socket: OpaquePointer) -> Int32 {
        switch roles[socket] {
        case .link(let link):
            guard link.isOpen else { return -1 }
            link.writable()
        case .waiting(let descriptor, let browser):
            guard case .browser(let exchange) = roles[browser] else { return -1 }
            switch exchange.send(to: descriptor) {
            case .wantsMore: lws_callback_on_writable(socket)
            case .waits: break
            case .isOver: return end(browser)
            }
        case .listener, .life, .browser, .webSocket, nil: break
        }
        return 0
    }

    // MARK: Browsers that wait

    /// While a browser waits for our answer the library does not look at what it sends, and when it leaves, or has sent
    /// something behind its request, turns in circles (libwebsockets 4.1). So the library has to leave it alone, and a
    /// copy of its descriptor is read and written apart.
    /// - Returns: false when there is no room for that.
    private func hold(_ browser: OpaquePointer, _ exchange: BrowserExchange) -> Bool {
        lws_rx_flow_control(browser, 0)
        let copy = fcntl(lws_get_socket_fd(browser), F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { return false }
        guard let held = adopt(copy, as: .waiting(copy, browser)) else {
            close(copy)
            return false
        }
        exchange.hold(askToWrite: { lws_callback_on_writable(held) }, letGo: { Self.kill(held) })
        return true
    }

    /// What a browser says now is nothing that anybody wants to know, but its end is.
    private func stays(_ descriptor: Int32) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return count > 0 || count < 0 && (errno == EAGAIN || errno == EINTR)
    }

    /// It has left, or has its answer. The result ends the copy.
    private func end(_ browser: OpaquePointer) -> Int32 {
        if case .browser(let exchange) = roles[browser] {
            exchange.letGo()
            Self.kill(browser)
        }
        return -1
    }

    /// From within another callback: it ends when the library comes round to it.
    private static func kill(_ socket: OpaquePointer) {
        lws_set_timeout(socket, PENDING_TIMEOUT_KILLED_BY_PARENT, Int32(LWS_TO_KILL_ASYNC))
    }

    private func acceptClients(_ listener: Int32) {
        for _ in 0..<64 {
            let client = clinux_accept(listener)
            guard client >= 0 else { return }
            guard clients.count < Self.maximumConnections else {
                if !isRefusalKnown { log("connections are refused: there are \(Self.maximumConnections)") }
                isRefusalKnown = true
                close(client)
                continue
            }
            clinux_tcp_nodelay(client)
            var number = lws_sock_file_fd_type()
            number.sockfd = client
            // On failure the library has closed it.
            if let socket = lws_adopt_descriptor_vhost(host, Self.http, number, nil, nil) { clients.insert(socket) }
        }
    }

    private static let http = lws_adoption_type(LWS_ADOPT_HTTP.rawValue | LWS_ADOPT_SOCKET.rawValue)

    private func makeLink() -> DaemonLink? {
        guard let descriptor = connect() else {
            log("the daemon takes no connection")
            return nil
        }
        let link = DaemonLink(descriptor)
        guard let socket = adopt(descriptor, as: .link(link)) else {
            close(descriptor)
            return nil
        }
        link.wantsToWrite = { lws_callback_on_writable(socket) }
        link.wantsToClose = { Self.kill(socket) }
        return link
    }

    // MARK: HTTP

    private func answer(_ socket: OpaquePointer) -> Int32 {
        let member: JSON.Member
        switch rules.decide(request(socket, isWebSocket: false)) {
        case .answer(let answer):
            write(answer, to: socket)
            return -1
        case .upgrade: return -1
        case .authenticate(let url): member = .init("tcTokenURL", .string(url))
        case .showUserInterface(let module): member = .init("showUI", .string(module))
        }
        guard let link = makeLink() else {
            write(.end(.failed, rules.identity), to: socket)
            return -1
        }
        // The user takes as long as the user takes.
        lws_set_timeout(socket, NO_PENDING_TIMEOUT, 0)
        let exchange = BrowserExchange(link, rules.identity)
        guard hold(socket, exchange) else {
            link.close()
            return -1
        }
        roles[socket] = .browser(exchange)
        exchange.begin(member)
        return 0
    }

    /// `name`: what the connection is to become.
    private func confirmUpgrade(_ socket: OpaquePointer, to name: String?) -> Int32 {
        let isWebSocket = name?.lowercased() == "websocket"
        switch rules.decide(request(socket, isWebSocket: isWebSocket)) {
        case .upgrade where isWebSocket: return 0
        case .answer(let answer):
            write(answer, to: socket)
            return 1
        case .upgrade, .authenticate, .showUserInterface: return -1
        }
    }

    private func write(_ answer: HTTPAnswer, to socket: OpaquePointer) { write(answer.bytes, to: socket) }

    private func write(_ bytes: [UInt8], to socket: OpaquePointer) {
        let room = Int(cwebsockets_room)
        var buffer = [UInt8](repeating: 0, count: room) + bytes
        buffer.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return }
            _ = lws_write(socket, base + room, bytes.count, LWS_WRITE_HTTP_HEADERS)
        }
    }

    private func request(_ socket: OpaquePointer, isWebSocket: Bool) -> ActivationRequest {
        let methods: [(lws_token_indexes, ActivationRequest.Method)] = [
            (WSI_TOKEN_GET_URI, .get), (WSI_TOKEN_HEAD_URI, .head), (WSI_TOKEN_OPTIONS_URI, .options),
            (WSI_TOKEN_POST_URI, .other), (WSI_TOKEN_PUT_URI, .other), (WSI_TOKEN_PATCH_URI, .other),
            (WSI_TOKEN_DELETE_URI, .other),
        ]
        let found = methods.first { lws_hdr_total_length(socket, $0.0) > 0 }
        var arguments: [String] = []
        while arguments.count < 64,
            let text = text(
                lws_hdr_fragment_length(socket, WSI_TOKEN_HTTP_URI_ARGS, Int32(arguments.count)),
                {
                    lws_hdr_copy_fragment(socket, $0, $1, WSI_TOKEN_HTTP_URI_ARGS, Int32(arguments.count))
                }
            )
        { arguments.append(text) }
        return ActivationRequest(
            found?.1 ?? .other,
            found.flatMap { header(socket, $0.0) } ?? "",
            arguments: arguments,
            host: header(socket, WSI_TOKEN_HOST),
            origin: header(socket, WSI_TOKEN_ORIGIN) ?? header(socket, WSI_TOKEN_SWORIGIN),
            webSocketVersion: isWebSocket ? header(socket, WSI_TOKEN_VERSION) ?? "" : nil
        )
    }

    /// nil when it is not there.
    private func header(_ socket: OpaquePointer, _ token: lws_token_indexes) -> String? {
        text(lws_hdr_total_length(socket, token)) { lws_hdr_copy(socket, $0, $1, token) }
    }

    private func text(_ length: Int32, _ copy: (UnsafeMutablePointer<CChar>?, Int32) -> Int32) -> String? {
        guard length > 0, length <= Int32(Self.maximumHead) else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(length) + 1) { buffer in
            let count = copy(buffer.baseAddress, length + 1)
            guard count >= 0, count <= length else { return nil }
            return String(decoding: buffer[..<Int(count)].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}
