// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CMicroHTTPD
package import Concurrency
import Glibc
import Host
package import Text

/// Serves the browser port: HTTP for browsers, and WebSockets for programs that use the SDK protocol.
///
/// libmicrohttpd parses requests and writes answers. It has no thread and no listening socket: this class accepts the
/// connections, and calls the library when its descriptor is readable or one of its timeouts is due.
@Loop package final class ActivationServer {
    /// Takes a line; a refusal of a request is not a fault.
    package typealias LineLog = (_ text: String, _ isRefusal: Bool) -> Void

    private let rules: ActivationRules
    /// Makes a connection to the daemon for a client with this socket. Returns nil if this fails.
    private let connect: (_ client: Int32) -> Int32?
    /// Returns the user of a client with this socket; nil if the kernel does not report it.
    private let user: (_ client: Int32) -> UInt32?
    private let lineLog: LineLog
    /// The time limit for the request of a connection, in seconds.
    private let requestTimeout: UInt32
    private var daemon: OpaquePointer?
    private var registration: Loop.Registration?
    private var listeners: [Listener] = []
    private var timer: Loop.Alarm?
    /// By the connection of the library.
    private var clients: [OpaquePointer: Client] = [:]
    /// The users of accepted sockets that the library has not reported yet.
    private var arriving: [Int32: UInt32?] = [:]
    /// The connections of each user that are not being closed.
    private var counts: [UInt32?: Int] = [:]
    private var lastNumber = 0
    /// Whether refused connections were logged. This is reset when half of the connections have ended.
    private var hasLoggedRefusal = false
    /// Whether the library has to be called again, although none of its sockets is ready.
    private var hasWork = false {
        didSet { if hasWork { timer?.set(after: 0) } }
    }
    private var lineLimit = LineLimit()
    /// The texts of pages, by language.
    private let catalogues: [String: Catalogue]

    /// The largest number of connections at once, and of one user. What has sent no whole request makes room for others.
    nonisolated package static let maximumConnections = 1024
    nonisolated package static let maximumPerUser = 256
    /// Connections that are being closed to make room.
    private static let reserve = 64
    /// The bytes of a request with its answer. A TcToken URL is long.
    private static let memory = 24_576

    package init(
        _ rules: ActivationRules,
        requestTimeout: UInt32 = 10,
        catalogues: [String: Catalogue] = [:],
        user: @escaping (_ client: Int32) -> UInt32?,
        connect: @escaping (_ client: Int32) -> Int32?,
        log: @escaping LineLog
    ) {
        self.rules = rules
        self.requestTimeout = requestTimeout
        self.catalogues = catalogues
        self.user = user
        self.connect = connect
        lineLog = log
    }

    /// Serves these listening sockets until `stop`. They stay those of the caller.
    /// - Returns: false if the server cannot start.
    package func start(listeners: [Int32]) -> Bool {
        let handlers = cmicrohttpd_handlers(
            target: { server, target, connection in
                ActivationServer.called(server) { $0.begin(connection, target) }
                return nil
            },
            request: { server, connection, _, method, _, _, _, _ in
                ActivationServer.called(server) { $0.answer(connection, method) } ?? .NO
            },
            connection: { server, connection, _, event in
                ActivationServer.called(server) { $0.changed(connection, event) }
            }
        )
        let context = Unmanaged.passUnretained(self).toOpaque()
        let limit = UInt32(Self.maximumConnections + Self.reserve)
        daemon = cmicrohttpd_start(handlers, context, Self.memory, limit, requestTimeout)
        guard let daemon else { return false }
        timer = Loop.Alarm { [weak self] in self?.work() }
        do throws(SystemError) {
            let descriptor = cmicrohttpd_descriptor(daemon)
            registration = try Loop.watch(descriptor, .read) { [weak self] _ in self?.work() }
            for listener in listeners {
                clinux_set_nonblocking(listener)
                self.listeners.append(try Listener(listener) { [weak self] in self?.acceptClients($0) })
            }
            return true
        } catch {
            log("cannot serve: \(error.description)")
            stop()
            return false
        }
    }

    /// Closes all connections.
    package func stop() {
        for listener in listeners { listener.cancel() }
        listeners = []
        registration?.cancel()
        timer?.cancel()
        for client in clients.values { client.end() }
        if let daemon {
            resumeAll()
            MHD_stop_daemon(daemon)
        }
        daemon = nil
    }

    /// The library must not stop while a connection is suspended.
    private func resumeAll() {
        for (connection, client) in clients where client.isSuspended {
            client.isSuspended = false
            MHD_resume_connection(connection)
        }
    }

    /// Runs `body` for a call of the library, which comes from the thread of the loop.
    private nonisolated static func called<Result: Sendable>(
        _ server: UnsafeMutableRawPointer?,
        _ body: @Loop (ActivationServer) -> Result
    ) -> Result? {
        guard let server else { return nil }
        nonisolated(unsafe) let raw = server
        return Loop.assumed { body(Unmanaged<ActivationServer>.fromOpaque(raw).takeUnretainedValue()) }
    }

    /// Lets the library work until it waits for sockets or for its next timeout.
    private func work() {
        guard let daemon else { return }
        hasWork = false
        MHD_run(daemon)
        // The calls of the library may have resumed or closed a connection.
        if hasWork {
            timer?.set(after: 0)
            return
        }
        var timeout: UInt64 = 0
        if MHD_get_timeout(daemon, &timeout) == .YES {
            timer?.set(after: Int64(min(timeout, 60_000)))
        } else {
            timer?.cancel()
        }
    }

    /// Logs a line. Any web page can cause one, so their number is limited.
    /// - Returns: whether it was written.
    @discardableResult
    private func log(_ text: String, isRefusal: Bool = false) -> Bool {
        guard lineLimit.mayWrite(at: Int(Loop.now / 1000)) else { return false }
        lineLog(text, isRefusal)
        return true
    }

    // MARK: Connections

    /// A connection of the library.
    @Loop private final class Client {
        let socket: Int32
        let user: UInt32?
        /// Counts the connections by their arrival.
        let number: Int
        /// Whether no whole request has come yet.
        var isIdle = true
        /// Whether the connection is being closed to make room.
        var isLeaving = false
        /// Closes a connection whose request does not arrive in time.
        var deadline: Loop.Alarm?
        /// The request target as the client has written it.
        var target: [UInt8] = []
        /// A browser that waits for its answer.
        var exchange: (BrowserExchange, watch: Loop.Registration?)?
        var isSuspended = false
        /// The answer to a browser that has waited.
        var outcome: ActivationOutcome?
        var webSocket: WebSocketClient?

        init(_ socket: Int32, _ user: UInt32?, _ number: Int) {
            self.socket = socket
            self.user = user
            self.number = number
        }

        func end() {
            deadline?.cancel()
            exchange?.watch?.cancel()
            exchange?.0.close()
            exchange = nil
            webSocket?.close()
        }
    }

    private func acceptClients(_ listener: Listener) {
        do throws(SystemError) {
            for _ in 0..<64 {
                guard let socket = try listener.accept() else { break }
                serve(socket)
            }
        } catch {
            log("cannot accept a connection: \(errorText(error.code))")
        }
        work()
    }

    /// Passes a connection to the library, or closes it.
    private func serve(_ socket: Int32) {
        let user = user(socket)
        guard let daemon, makeRoom(for: user) else {
            if !hasLoggedRefusal {
                hasLoggedRefusal = log("connections are refused: the limit is \(Self.maximumConnections)")
            }
            close(socket)
            return
        }
        arriving[socket] = user
        clinux_tcp_nodelay(socket)
        // The library needs an address for limits that are not used. On failure it closes the socket.
        var address = sockaddr()
        address.sa_family = sa_family_t(AF_INET)
        MHD_add_connection(daemon, socket, &address, socklen_t(MemoryLayout<sockaddr>.size))
        arriving[socket] = nil
    }

    /// Closes the oldest connection without a request, if that is necessary for one more of a user: one of the same user,
    /// or of the user who has the most.
    /// - Returns: false if there is no room.
    private func makeRoom(for user: UInt32?) -> Bool {
        let own = counts[user, default: 0]
        let all = counts.values.reduce(0, +)
        guard clients.count < all + Self.reserve else { return false }
        guard own >= Self.maximumPerUser || all >= Self.maximumConnections else { return true }
        let idle = clients.values.filter { client in
            guard client.isIdle, !client.isLeaving else { return false }
            return client.user == user || own < Self.maximumPerUser && counts[client.user, default: 0] > own
        }
        let oldest = idle.max { first, second in
            let (one, other) = (counts[first.user, default: 0], counts[second.user, default: 0])
            return one == other ? first.number > second.number : one < other
        }
        guard let oldest else { return false }
        leave(oldest)
        return true
    }

    /// Has the library close a connection.
    private func leave(_ client: Client) {
        client.isLeaving = true
        uncount(client)
        shutdown(client.socket, Int32(SHUT_RDWR))
    }

    private func uncount(_ client: Client) {
        let rest = counts[client.user, default: 1] - 1
        counts[client.user] = rest > 0 ? rest : nil
    }

    private func changed(_ connection: OpaquePointer?, _ event: MHD_ConnectionNotificationCode) {
        guard let connection else { return }
        guard event == .CONNECTION_NOTIFY_STARTED else {
            if let client = clients.removeValue(forKey: connection) {
                if !client.isLeaving { uncount(client) }
                client.end()
            }
            if clients.count < Self.maximumConnections / 2 { hasLoggedRefusal = false }
            return
        }
        let socket = cmicrohttpd_socket(connection)
        lastNumber += 1
        let client = Client(socket, arriving[socket] ?? nil, lastNumber)
        counts[client.user, default: 0] += 1
        // The library restarts its timeout at each byte.
        client.deadline = Loop.Alarm { [weak client] in
            if let client { shutdown(client.socket, Int32(SHUT_RDWR)) }
        }
        client.deadline?.set(after: Int64(requestTimeout) * 1000)
        clients[connection] = client
    }

    private func makeLink(for client: Client) -> BrowserLink? {
        guard let descriptor = connect(client.socket) else {
            // A client that has left has no address, which the daemon needs.
            if LoopbackClient(socket: client.socket) != nil { log("the daemon accepts no connection") }
            return nil
        }
        do throws(SystemError) {
            return try BrowserLink(descriptor)
        } catch {
            log("cannot watch a connection: \(error.description)")
            return nil
        }
    }

    // MARK: HTTP

    private func begin(_ connection: OpaquePointer?, _ target: UnsafePointer<CChar>?) {
        guard let connection, let target else { return }
        clients[connection]?.target = Array(UnsafeRawBufferPointer(start: target, count: strlen(target)))
    }

    /// Answers a request, or begins what the answer needs. The library calls this again after the connection resumes.
    private func answer(_ connection: OpaquePointer?, _ method: UnsafePointer<CChar>?) -> MHD_Result {
        guard let connection, let method, let client = clients[connection] else { return .NO }
        client.deadline?.cancel()
        client.isIdle = false
        if let outcome = client.outcome { return queue(.end(outcome, rules.identity), connection) }
        let headers = Self.headers(of: connection)
        let request = ActivationRequest(String(cString: method), target: client.target, headers: headers)
        switch rules.decide(request) {
        case .answer(let answer): return queue(answer, connection)
        case .refuse(let answer, let reason):
            log(reason, isRefusal: true)
            return queue(answer, connection)
        case .upgrade(let accept): return upgrade(connection, accept)
        case .authenticate(let url): return wait(connection, client, .init("tcTokenURL", .string(url)))
        case .showUserInterface(let module): return wait(connection, client, .init("showUI", .string(module)))
        }
    }

    private static func headers(of connection: OpaquePointer) -> [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = []
        withUnsafeMutablePointer(to: &headers) { list in
            _ = MHD_get_connection_values_n(
                connection,
                .HEADER_KIND,
                { list, _, name, nameSize, value, valueSize in
                    func text(_ start: UnsafePointer<CChar>?, _ size: Int) -> String {
                        String(
                            decoding: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : size),
                            as: UTF8.self
                        )
                    }
                    list?.assumingMemoryBound(to: [(name: String, value: String)].self).pointee
                        .append((text(name, nameSize), text(value, valueSize)))
                    return .YES
                },
                list
            )
        }
        return headers
    }

    private func queue(_ answer: HTTPAnswer, _ connection: OpaquePointer) -> MHD_Result {
        let accepted = Self.headers(of: connection).first { $0.name.asciiOnly.lowercased() == "accept-language" }
        let language = accepted.flatMap { AcceptedLanguages($0.value.asciiOnly).first(among: catalogues.keys) }
        let catalogue = language.flatMap { catalogues[$0] }
        var body = Array(answer.body(language ?? "en", catalogue ?? .english).utf8)
        let response = MHD_create_response_from_buffer(body.count, &body, .RESPMEM_MUST_COPY)
        return queue(response, UInt32(answer.status), answer.headers + ["Connection: close"], connection)
    }

    private func queue(
        _ response: OpaquePointer?,
        _ status: UInt32,
        _ headers: [String],
        _ connection: OpaquePointer
    ) -> MHD_Result {
        guard let response else { return .NO }
        defer { MHD_destroy_response(response) }
        for header in headers {
            let parts = header.split(separator: ":", maxSplits: 1)
            guard parts.count == 2,
                MHD_add_response_header(response, String(parts[0]), String(parts[1].dropFirst())) == .YES
            else { return .NO }
        }
        return MHD_queue_response(connection, status, response)
    }

    // MARK: Browsers that wait

    private func wait(_ connection: OpaquePointer, _ client: Client, _ member: JSON.Member) -> MHD_Result {
        guard let link = makeLink(for: client) else { return queue(.end(.failed, rules.identity), connection) }
        let exchange = BrowserExchange(link) { [weak self] in self?.progressed(connection, $0) }
        // The library does not read a connection that waits, so it would not see that the browser leaves.
        let watch = try? Loop.watch(client.socket, .read) { [weak self] _ in self?.checkBrowser(connection) }
        client.exchange = (exchange, watch)
        client.isSuspended = true
        MHD_suspend_connection(connection)
        exchange.begin(member)
        return .YES
    }

    private func progressed(_ connection: OpaquePointer, _ progress: ActivationProgress) {
        guard let client = clients[connection] else { return }
        switch progress {
        case .accepted:
            // The first bytes on this socket, so they fit.
            let bytes = HTTPAnswer.processing
            _ = send(client.socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        case .ended(let outcome): resume(connection, client, outcome)
        }
    }

    private func resume(_ connection: OpaquePointer, _ client: Client, _ outcome: ActivationOutcome) {
        client.exchange?.watch?.cancel()
        client.exchange = nil
        client.outcome = outcome
        guard client.isSuspended else { return }
        client.isSuspended = false
        MHD_resume_connection(connection)
        hasWork = true
    }

    /// Drops bytes behind a request, and ends the exchange of a browser that has left.
    private func checkBrowser(_ connection: OpaquePointer) {
        guard let client = clients[connection] else { return }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(client.socket, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        if count > 0 || count < 0 && (errno == EAGAIN || errno == EINTR) { return }
        client.exchange?.0.close()
        shutdown(client.socket, Int32(SHUT_RDWR))
        resume(connection, client, .failed)
    }

    // MARK: WebSockets

    private func upgrade(_ connection: OpaquePointer, _ accept: String) -> MHD_Result {
        let response = MHD_create_response_for_upgrade(
            { server, connection, _, early, count, socket, handle in
                guard let connection, let handle else { return }
                nonisolated(unsafe) let bytes = UnsafeMutableRawBufferPointer(
                    start: UnsafeMutableRawPointer(mutating: early),
                    count: early == nil ? 0 : count
                )
                ActivationServer.called(server) { $0.upgraded(connection, bytes, socket, handle) }
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        return queue(response, 101, ["Upgrade: websocket", "Sec-WebSocket-Accept: \(accept)"], connection)
    }

    private func upgraded(
        _ connection: OpaquePointer,
        _ early: UnsafeMutableRawBufferPointer,
        _ socket: Int32,
        _ handle: OpaquePointer
    ) {
        guard let client = clients[connection], let link = makeLink(for: client) else {
            return cmicrohttpd_close(handle)
        }
        clinux_set_nonblocking(socket)
        let webSocket = WebSocketClient(socket, handle, link) { [weak self] in self?.hasWork = true }
        client.webSocket = webSocket
        webSocket.start(early)
    }
}
