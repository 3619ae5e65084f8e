// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Concurrency
import Crypto
import Glibc
import HTTP
import Host
package import ReadersRemote
package import Text

/// How both sides of a connection authenticate each other.
package enum LinkSecurity: Sendable {
    /// By the code that one device shows and the user types at the other: its digits. RSA-PSK, RFC 4279.
    ///
    /// With `device` only the device with this fingerprint is accepted, before it learns anything about the code.
    case pairing(code: SecretBox, device: String? = nil)
    /// By the fingerprints of the devices that are trusted.
    case paired(trusted: Set<String>)
}

/// One connection between two devices: TCP, TLS and a WebSocket.
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

    private enum Phase {
        case connecting
        case handshake(TLSEndpoint)
        /// The HTTP exchange that opens the WebSocket. A client has sent a key.
        case upgrade(TLSEndpoint, key: String?)
        case open(TLSEndpoint)
        /// The last frames wait to be sent.
        case leaving(TLSEndpoint, Ending)
        case over
    }

    /// The maximum number of bytes that wait to be sent.
    private static let maximumBacklog = 1 << 20
    /// The maximum number of records that are received before others on the loop have their turn.
    private static let maximumTurn = 64
    /// The maximum number of messages that wait to be handled.
    private nonisolated static let maximumMessages = 64

    /// All events, for one consumer. The last one is `ended`, unless too many messages wait.
    package nonisolated let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    /// The link itself, until its end.
    private var keep: RemoteLink?
    private let identity: RemoteIdentity
    private let security: LinkSecurity
    private let times: LinkTimes
    private var phase = Phase.connecting
    private var socket: Int32 = -1
    private var isServer = false
    /// What the other side of a client has as its host.
    private var host = ""
    private var registration: Loop.Registration?
    /// The messages that have no frame yet.
    private var messages: [[UInt8]] = []
    private var backlog = 0
    /// The code with which this side closes the WebSocket after the messages.
    private var closeCode: UInt16?
    /// The bytes that wait to be sent.
    private var unsent: [UInt8] = []
    /// Whether the socket takes no more bytes.
    private var isBlocked = false
    /// Whether the other side has left. What it sent before may say why, so it is read first.
    private var isCut = false
    private var head: [UInt8] = []
    private lazy var reader = WebSocketReader(isMasked: isServer, limit: IFDMessage.maximumCount)
    private lazy var writer = WebSocketWriter(isMasked: !isServer)
    /// When the last message was received, in microseconds.
    private var lastMessage: Int64 = 0
    private var isPongExpected = false
    /// Ends what takes too long: the connection, the handshakes together, or a write.
    private lazy var limit = Loop.Alarm { [weak self] in self?.exceedLimit() }
    private lazy var ping = Loop.Alarm { [weak self] in self?.sendPing() }
    private lazy var delay = Loop.Alarm { [weak self] in self?.sendMessages() }

    private init(_ identity: RemoteIdentity, _ security: LinkSecurity, _ times: LinkTimes) {
        self.identity = identity
        self.security = security
        self.times = times
        (events, continuation) = AsyncStream.makeStream(
            of: Event.self,
            bufferingPolicy: .bufferingOldest(Self.maximumMessages)
        )
        keep = self
    }

    isolated deinit {
        registration?.cancel()
        if socket >= 0 { Glibc.close(socket) }
    }

    // MARK: Calls of the owner

    /// Connects to a device.
    package static func connect(
        to address: RemoteAddress,
        interface: String? = nil,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: LinkTimes = LinkTimes()
    ) -> RemoteLink {
        let link = RemoteLink(identity, security, times)
        link.connect(to: address, interface)
        return link
    }

    private func connect(to address: RemoteAddress, _ interface: String?) {
        host = address.description
        socket = Glibc.socket(address.family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return end(.failed("cannot open a socket: \(errorText())")) }
        configure(.write)
        if let interface { bindToInterface(socket, interface) }
        limit.set(after: times.setUp)
        let result = address.withSocketAddress(for: address.family) { Glibc.connect(socket, $0, $1) }
        if result != 0, errno != EINPROGRESS { end(.unreachable) }
    }

    /// Serves an accepted connection, and closes its socket at the end.
    package static func serve(
        _ accepted: Int32,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: LinkTimes = LinkTimes()
    ) -> RemoteLink {
        let link = RemoteLink(identity, security, times)
        link.socket = accepted
        link.isServer = true
        link.configure(.read)
        link.beginHandshake()
        return link
    }

    /// Queues a text message.
    package func send(_ message: [UInt8]) {
        if case .over = phase { return }
        guard closeCode == nil else { return }
        messages.append(message)
        backlog += message.count
        sendMessages()
        if backlog + unsent.count > Self.maximumBacklog { close(1011) }
    }

    /// Closes the WebSocket after the queued messages, or ends a link that is not open yet. 1000 is the normal end.
    package func close(_ code: UInt16 = 1000) {
        guard closeCode == nil else { return }
        closeCode = code
        switch phase {
        case .connecting, .handshake, .upgrade: end(.closed(code))
        case .open: sendMessages()
        case .leaving, .over: break
        }
    }

    // MARK: The socket

    private func configure(_ interest: Loop.Interest) {
        clinux_set_nonblocking(socket)
        clinux_tcp_nodelay(socket)
        do throws(SystemError) {
            registration = try Loop.watch(socket, interest) { [weak self] _ in self?.handle() }
        } catch {
            end(.failed(error.description))
        }
    }

    private func handle() {
        switch phase {
        case .connecting: finishConnection()
        case .handshake(let tls): handshake(tls)
        case .upgrade(let tls, _), .open(let tls), .leaving(let tls, _):
            write(tls)
            receive()
        case .over: break
        }
    }

    private func exceedLimit() {
        if case .leaving(_, let ending) = phase { end(ending) } else { end(.unreachable) }
    }

    private func yield(_ event: Event) {
        if case .dropped = continuation.yield(event) { end(.violation) }
    }

    private func end(_ ending: Ending) {
        if case .over = phase { return }
        phase = .over
        for alarm in [limit, ping, delay] { alarm.cancel() }
        registration?.cancel()
        if socket >= 0 { Glibc.close(socket) }
        socket = -1
        registration = nil
        messages = []
        unsent = []
        continuation.yield(.ended(ending))
        continuation.finish()
        keep = nil
    }

    // MARK: Handshakes

    private func finishConnection() {
        var (code, count) = (Int32(0), socklen_t(4))
        getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &count)
        if code == 0 { beginHandshake() } else { end(.unreachable) }
    }

    private func beginHandshake() {
        if case .over = phase { return }
        limit.set(after: times.setUp)
        do throws(CryptoError) {
            let tls = try TLSEndpoint(socket: socket, identity, security, isServer: isServer)
            phase = .handshake(tls)
            handshake(tls)
        } catch {
            end(.failed("TLS: \(error)"))
        }
    }

    private func handshake(_ tls: TLSEndpoint) {
        switch tls.handshake() {
        case .waits(let interest): registration?.change(interest)
        case .lost: end(tls.refusal)
        case .done:
            do throws(CryptoError) {
                let key = isServer ? nil : try WebSocketHandshake.makeKey()
                phase = .upgrade(tls, key: key)
                registration?.change(.read)
                if let key { send(WebSocketHandshake.request(host: host, key: key), tls) }
                receive()
            } catch {
                end(.failed("no random bytes"))
            }
        }
    }

    /// Reads the head of the HTTP request or response that opens the WebSocket.
    private func upgrade(_ tls: TLSEndpoint, key: String?) {
        guard let count = WebSocketHandshake.headCount(head) else {
            if head.count > WebSocketHandshake.maximumCount { end(.violation) }
            return
        }
        let rest = head[count...]
        head.removeLast(rest.count)
        if let key {
            guard WebSocketHandshake.isAccepted(head, key: key) else { return end(.violation) }
        } else {
            guard let answer = WebSocketHandshake.answer(to: head) else { return end(.violation) }
            send(answer, tls)
        }
        if case .over = phase { return }
        phase = .open(tls)
        limit.cancel()
        ping.set(after: times.ping)
        yield(.opened(device: tls.device))
        reader.append(rest)
        parseFrames()
        sendMessages()
    }

    // MARK: Bytes

    private func send(_ bytes: [UInt8], _ tls: TLSEndpoint) {
        unsent += bytes
        write(tls)
    }

    private func write(_ tls: TLSEndpoint) {
        switch isCut ? .lost : unsent.isEmpty ? .done : tls.write(unsent) {
        case .done:
            unsent = []
            registration?.change(.read)
            switch phase {
            case .open:
                if isBlocked { limit.cancel() }
                isBlocked = false
            case .leaving(_, let ending):
                tls.shutDown()
                end(ending)
            default: break
            }
        case .waits(let interest):
            if case .leaving = phase {
                registration?.change(interest)
            } else {
                registration?.change([.read, interest])
            }
            guard case .open = phase, !isBlocked else { return }
            isBlocked = true
            limit.set(after: times.setUp)
        case .lost:
            unsent = []
            guard case .open = phase else { return endLost(tls) }
            guard !isCut else { return }
            isCut = true
            Task { @Loop [weak self] in self?.receive() }
        }
    }

    /// Receives until nothing is left.
    private func receive() {
        for _ in 0..<Self.maximumTurn {
            switch phase {
            case .upgrade(let tls, let key):
                guard let bytes = receive(tls) else { return }
                head += bytes
                upgrade(tls, key: key)
            case .open(let tls):
                guard let bytes = receive(tls) else { return }
                reader.append(bytes)
                parseFrames()
            default: return
            }
        }
        Task { @Loop [weak self] in self?.receive() }
    }

    private func receive(_ tls: TLSEndpoint) -> [UInt8]? {
        switch tls.receive() {
        case .bytes(let bytes): return bytes
        case .nothing: if isCut { endLost(tls) }
        case .lost: endLost(tls)
        }
        return nil
    }

    private func endLost(_ tls: TLSEndpoint) {
        switch phase {
        case .open: end(.closed(1006))
        case .leaving(_, let ending): end(ending)
        default: end(tls.refusal)
        }
    }

    // MARK: Frames

    private func parseFrames() {
        while case .open(let tls) = phase, let event = reader.next() {
            switch event {
            case .text(let message):
                lastMessage = Loop.turn
                yield(.message(message))
            case .binary: break
            case .ping(let payload):
                // The other side sends pings and does not read the answers.
                guard unsent.count <= Self.maximumBacklog else { return end(.violation) }
                send(frame(.pong, payload), tls)
            case .pong:
                isPongExpected = false
                ping.set(after: times.ping)
            case .close(let code): leave(code == 1005 ? 1000 : code, .closed(code), tls)
            case .violation(let code): leave(code, .violation, tls)
            }
        }
    }

    private func sendMessages() {
        guard case .open(let tls) = phase else { return }
        if !messages.isEmpty {
            let time = lastMessage + times.answer * 1000
            if isServer, Loop.clock < time { return delay.set(at: time) }
            for message in messages { unsent += frame(.text, message) }
            messages = []
            backlog = 0
        }
        if let closeCode { leave(closeCode, .closed(closeCode), tls) } else { write(tls) }
    }

    private func sendPing() {
        guard case .open(let tls) = phase else { return }
        if isPongExpected { return leave(1000, .silent, tls) }
        isPongExpected = true
        ping.set(after: times.pong)
        send(frame(.ping, []), tls)
    }

    /// Closes the WebSocket with a code, and then the connection.
    private func leave(_ code: UInt16, _ ending: Ending, _ tls: TLSEndpoint) {
        phase = .leaving(tls, ending)
        ping.cancel()
        limit.set(after: times.setUp)
        send((try? writer.close(code)) ?? [], tls)
    }

    private func frame(_ opcode: WebSocketWriter.Opcode, _ payload: [UInt8]) -> [UInt8] {
        (try? writer.frame(opcode, payload)) ?? []
    }
}
