// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import COpenSSL
import Concurrency
import Crypto
import Glibc
import Synchronization

/// One connection between two devices: TCP, TLS and a WebSocket, on a thread of its own.
///
/// The link sends pings, and ends when the other side does not answer them. It never connects again by itself.
package final class RemoteLink: Sendable {
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
        package var setUp: Int64 = 5000
        package var ping: Int64 = 5000
        package var pong: Int64 = 5000
        /// AusweisApp loses an answer that comes sooner. Only a server waits.
        package var answer: Int64 = 1

        package init() {}
    }

    fileprivate struct Outbox {
        var frames: [[UInt8]] = []
        var count = 0
        /// The code with which this side closes the WebSocket.
        var closeCode: UInt16?
        var isOver = false
    }

    /// The most bytes that wait to be sent, and the most messages that wait to be handled.
    private static let maximumBacklog = 1 << 20
    private static let maximumMessages = 64

    /// All events, for one consumer. The last one is `ended`, unless too many messages wait.
    package let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let outbox = Mutex(Outbox())
    private let wake: Int32

    private init() {
        (events, continuation) = AsyncStream.makeStream(
            of: Event.self,
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
        times: Times = Times()
    ) -> RemoteLink {
        let link = RemoteLink()
        link.run { work throws(LinkStop) in
            let socket = try work.connect(address, interface)
            return LinkPlan(socket: socket, isServer: false, host: address.description)
        } with: {
            LinkSettings(identity: identity, security: security, times: times)
        }
        return link
    }

    /// Serves an accepted connection, and closes its socket at the end.
    package static func serve(
        _ socket: Int32,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: Times = Times()
    ) -> RemoteLink {
        let link = RemoteLink()
        let isStarted = link.run { _ throws(LinkStop) in
            LinkPlan(socket: socket, isServer: true, host: "")
        } with: {
            LinkSettings(identity: identity, security: security, times: times)
        }
        if !isStarted { Glibc.close(socket) }
        return link
    }

    /// Starts the thread.
    /// - Returns: false if there is none; then `open` is not called.
    @discardableResult
    private func run(
        _ open: @escaping @Sendable (LinkWork) throws(LinkStop) -> LinkPlan,
        with settings: @escaping @Sendable () -> LinkSettings
    ) -> Bool {
        let isStarted = startThread("badged-remote") { [self] in
            let work = LinkWork(self, settings())
            end(work.run(open))
        }
        if !isStarted { end(.failed("no thread left")) }
        return isStarted
    }

    private func end(_ ending: Ending) {
        outbox.withLock { outbox in
            outbox.isOver = true
            outbox.frames = []
        }
        // A consumer with too many messages learns only the end of the stream.
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

    fileprivate var wakeDescriptor: Int32 { wake }

    fileprivate var isClosing: UInt16? { outbox.withLock { $0.closeCode } }

    fileprivate func takeMessages() -> [[UInt8]] {
        outbox.withLock { outbox in
            defer { (outbox.frames, outbox.count) = ([], 0) }
            return outbox.frames
        }
    }

    fileprivate func yield(_ event: Event) throws(LinkStop) {
        if case .dropped = continuation.yield(event) { throw LinkStop(.violation) }
    }
}

/// The end of a link, as an error.
struct LinkStop: Error {
    let ending: RemoteLink.Ending

    init(_ ending: RemoteLink.Ending) { self.ending = ending }
}

private struct LinkPlan {
    let socket: Int32
    let isServer: Bool
    let host: String
}

private struct LinkSettings {
    let identity: RemoteIdentity
    let security: LinkSecurity
    let times: RemoteLink.Times
}

/// The work of the thread of one link.
private final class LinkWork {
    private let link: RemoteLink
    private let settings: LinkSettings
    private var socket: Int32 = -1
    private var tls: OpaquePointer?
    /// Whether TLS is established.
    private var isSecure = false
    private var isOpen = false
    private var context: TLSContext?
    private var chunk = [UInt8](repeating: 0, count: 16_384)

    init(_ link: RemoteLink, _ settings: LinkSettings) { (self.link, self.settings) = (link, settings) }

    deinit {
        SSL_free(tls)
        if socket >= 0 { close(socket) }
    }

    func run(_ open: (LinkWork) throws(LinkStop) -> LinkPlan) -> RemoteLink.Ending {
        do throws(LinkStop) {
            let plan = try open(self)
            socket = plan.socket
            clinux_set_nonblocking(socket)
            clinux_tcp_nodelay(socket)
            let deadline = now + settings.times.setUp
            try handshake(plan, deadline)
            let rest = try openWebSocket(plan, deadline)
            isOpen = true
            try link.yield(.opened(device: context?.device ?? ""))
            return try exchange(plan, rest)
        } catch {
            return error.ending
        }
    }

    private var now: Int64 {
        var clock = timespec()
        clock_gettime(CLOCK_MONOTONIC, &clock)
        return Int64(clock.tv_sec) * 1000 + Int64(clock.tv_nsec) / 1_000_000
    }

    /// Waits for the socket until the deadline.
    /// - Throws: `unreachable` when the time is over; the code of `close` when this side closes the link.
    private func wait(_ events: Int32, until deadline: Int64) throws(LinkStop) {
        while true {
            if !isOpen, let code = link.isClosing { throw LinkStop(.closed(code)) }
            let left = deadline - now
            guard left > 0 else { throw LinkStop(.unreachable) }
            let ready = poll(events, left)
            if ready { return }
        }
    }

    /// Whether the socket is ready. Returns early when the link is woken.
    private func poll(_ events: Int32, _ milliseconds: Int64) -> Bool {
        var descriptors = [
            pollfd(fd: socket, events: Int16(events), revents: 0),
            pollfd(fd: link.wakeDescriptor, events: Int16(POLLIN), revents: 0),
        ]
        guard Glibc.poll(&descriptors, 2, Int32(clamping: milliseconds)) > 0 else { return false }
        if descriptors[1].revents != 0 {
            var count: UInt64 = 0
            _ = read(link.wakeDescriptor, &count, 8)
        }
        return descriptors[0].revents != 0
    }

    // MARK: TCP

    func connect(_ address: RemoteAddress, _ interface: String?) throws(LinkStop) -> Int32 {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw LinkStop(.failed("socket: \(errno)")) }
        clinux_set_nonblocking(socket)
        if let interface { bindToInterface(socket, interface) }
        let result = address.withSocketAddress { Glibc.connect(socket, $0, $1) }
        if result != 0 {
            guard errno == EINPROGRESS else { throw LinkStop(.unreachable) }
            try wait(Int32(POLLOUT), until: now + settings.times.setUp)
            var (code, count) = (Int32(0), socklen_t(4))
            getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &count)
            guard code == 0 else { throw LinkStop(.unreachable) }
        }
        return socket
    }

    // MARK: TLS

    private func handshake(_ plan: LinkPlan, _ deadline: Int64) throws(LinkStop) {
        let made: TLSContext
        do throws(CryptoError) {
            made = try TLSContext(settings.identity, settings.security, isServer: plan.isServer)
        } catch {
            throw LinkStop(.failed("TLS: \(error)"))
        }
        context = made
        tls = SSL_new(made.pointer)
        guard tls != nil, SSL_set_fd(tls, socket) == 1 else { throw LinkStop(.failed("SSL_new")) }
        while true {
            ERR_clear_error()
            let result = plan.isServer ? SSL_accept(tls) : SSL_connect(tls)
            if result == 1 { break }
            try handle(result, deadline)
        }
        isSecure = true
    }

    /// Waits for what a call of libssl needs.
    private func handle(_ result: Int32, _ deadline: Int64) throws(LinkStop) {
        switch SSL_get_error(tls, result) {
        case SSL_ERROR_WANT_READ: try wait(Int32(POLLIN), until: deadline)
        case SSL_ERROR_WANT_WRITE: try wait(Int32(POLLOUT), until: deadline)
        default: throw LinkStop(failure())
        }
    }

    private func failure() -> RemoteLink.Ending {
        ERR_clear_error()
        if isOpen { return .closed(1006) }
        if context?.hasRefused == true { return .untrusted }
        if context?.isPairing == true, !isSecure, context?.hasWrongCode == true { return .wrongCode }
        return .refused
    }

    private func write(_ bytes: [UInt8]) throws(LinkStop) {
        let deadline = now + settings.times.setUp
        var start = 0
        while start < bytes.count {
            ERR_clear_error()
            let result = bytes.withUnsafeBytes { raw in
                SSL_write(tls, raw.baseAddress?.advanced(by: start), Int32(raw.count - start))
            }
            if result > 0 {
                start += Int(result)
            } else {
                try handle(result, deadline)
            }
        }
    }

    /// Returns what has come; nil if nothing is there now.
    private func receive() throws(LinkStop) -> ArraySlice<UInt8>? {
        ERR_clear_error()
        let count = chunk.withUnsafeMutableBytes { SSL_read(tls, $0.baseAddress, Int32($0.count)) }
        if count > 0 { return chunk.prefix(Int(count)) }
        switch SSL_get_error(tls, count) {
        case SSL_ERROR_WANT_READ: return nil
        default: throw LinkStop(failure())
        }
    }

    // MARK: WebSocket

    /// Returns the bytes behind the HTTP exchange.
    private func openWebSocket(_ plan: LinkPlan, _ deadline: Int64) throws(LinkStop) -> [UInt8] {
        var key = ""
        if !plan.isServer {
            key = (try? WebSocketHandshake.makeKey()) ?? ""
            try write(WebSocketHandshake.request(host: plan.host, key: key))
        }
        var bytes: [UInt8] = []
        while true {
            if let count = WebSocketHandshake.headCount(bytes) {
                let (head, rest) = (Array(bytes.prefix(count)), Array(bytes.dropFirst(count)))
                if plan.isServer {
                    guard let answer = WebSocketHandshake.answer(to: head) else { throw LinkStop(.violation) }
                    try write(answer)
                } else {
                    guard WebSocketHandshake.isAccepted(head, key: key) else { throw LinkStop(.violation) }
                }
                return rest
            }
            guard bytes.count <= WebSocketHandshake.maximumCount else { throw LinkStop(.violation) }
            if let more = try receive() {
                bytes += more
            } else {
                try wait(Int32(POLLIN), until: deadline)
            }
        }
    }

    private func exchange(_ plan: LinkPlan, _ first: [UInt8]) throws(LinkStop) -> RemoteLink.Ending {
        let writer = WebSocketWriter(isMasked: !plan.isServer)
        var reader = WebSocketReader(isMasked: plan.isServer, limit: IFDMessage.maximumCount)
        reader.append(first)
        var (lastMessage, pingTime, pongLimit) = (Int64(0), now + settings.times.ping, Int64?.none)
        while true {
            let (messages, code) = (link.takeMessages(), link.isClosing)
            if !messages.isEmpty, plan.isServer, now - lastMessage <= settings.times.answer {
                usleep(UInt32(settings.times.answer) * 1000)
            }
            for message in messages { try write(frame(writer, .text, message)) }
            if let code {
                try? write(closeFrame(writer, code))
                return leave(.closed(code))
            }
            do throws(WebSocketError) {
                while let event = try reader.next() {
                    switch event {
                    case .text(let message):
                        lastMessage = now
                        try stopping { () throws(LinkStop) in try link.yield(.message(message)) }
                    case .binary: break
                    case .ping(let payload):
                        try stopping { () throws(LinkStop) in try write(frame(writer, .pong, payload)) }
                    case .pong: (pingTime, pongLimit) = (now + settings.times.ping, nil)
                    case .close(let code):
                        try? write(closeFrame(writer, code == 1005 ? 1000 : code))
                        return leave(.closed(code))
                    }
                }
            } catch {
                guard error.code != 0 else { throw LinkStop(.closed(1006)) }
                try? write(closeFrame(writer, error.code))
                return leave(.violation)
            }
            if let bytes = try receive() {
                reader.append(bytes)
                continue
            }
            let time = now
            if let limit = pongLimit, time >= limit {
                try? write(closeFrame(writer, 1000))
                return leave(.silent)
            }
            if pongLimit == nil, time >= pingTime {
                try write(frame(writer, .ping, []))
                pongLimit = time + settings.times.pong
            }
            _ = poll(Int32(POLLIN), max((pongLimit ?? pingTime) - now, 0))
        }
    }

    /// Runs `body` where only errors of the WebSocket are caught; code 0 stands for a link that has ended.
    private func stopping(_ body: () throws(LinkStop) -> Void) throws(WebSocketError) {
        do throws(LinkStop) {
            try body()
        } catch {
            throw WebSocketError(code: 0)
        }
    }

    private func leave(_ ending: RemoteLink.Ending) -> RemoteLink.Ending {
        SSL_shutdown(tls)
        ERR_clear_error()
        return ending
    }

    private func frame(_ writer: WebSocketWriter, _ opcode: WebSocketWriter.Opcode, _ payload: [UInt8]) -> [UInt8] {
        (try? writer.frame(opcode, payload)) ?? []
    }

    private func closeFrame(_ writer: WebSocketWriter, _ code: UInt16) -> [UInt8] { (try? writer.close(code)) ?? [] }
}
