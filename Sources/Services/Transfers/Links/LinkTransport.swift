// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import COpenSSL
import CTLS
import Crypto
import Glibc
import RemoteIFD

/// The end of a link, as an error.
struct LinkStop: Error {
    let ending: RemoteLink.Ending

    init(_ ending: RemoteLink.Ending) { self.ending = ending }
}

struct LinkSettings: Sendable {
    let identity: RemoteIdentity
    let security: LinkSecurity
    let times: RemoteLink.Times

    init(_ identity: RemoteIdentity, _ security: LinkSecurity, _ times: RemoteLink.Times) {
        (self.identity, self.security, self.times) = (identity, security, times)
    }
}

/// TCP and TLS of one link, for the thread of the link.
final class LinkTransport {
    private let link: LinkThread
    private let settings: LinkSettings
    private var socket: Int32 = -1
    private var tls: OpaquePointer?
    private var context: TLSContext?
    /// Whether TLS is established.
    private var isSecure = false
    /// Whether the WebSocket is open. Then a cut connection is no refusal, and `close` waits for queued messages.
    var isOpen = false
    private var chunk = [UInt8](repeating: 0, count: 16_384)

    init(_ link: LinkThread, _ settings: LinkSettings) { (self.link, self.settings) = (link, settings) }

    deinit {
        SSL_free(tls)
        if socket >= 0 { close(socket) }
    }

    /// The fingerprint of the other device, after the handshake.
    var device: String { context?.device ?? "" }

    var now: Int64 {
        var clock = timespec()
        clock_gettime(CLOCK_MONOTONIC, &clock)
        return Int64(clock.tv_sec) * 1000 + Int64(clock.tv_nsec) / 1_000_000
    }

    // MARK: TCP

    func connect(_ address: RemoteAddress, _ interface: String?) throws(LinkStop) {
        socket = Glibc.socket(address.family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw LinkStop(.failed("socket: \(errno)")) }
        configure()
        if let interface { bindToInterface(socket, interface) }
        let result = address.withSocketAddress(for: address.family) { Glibc.connect(socket, $0, $1) }
        if result != 0 {
            guard errno == EINPROGRESS else { throw LinkStop(.unreachable) }
            try wait(Int32(POLLOUT), until: now + settings.times.setUp)
            var (code, count) = (Int32(0), socklen_t(4))
            getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &count)
            guard code == 0 else { throw LinkStop(.unreachable) }
        }
    }

    /// Takes an accepted connection.
    func take(_ accepted: Int32) {
        socket = accepted
        configure()
    }

    private func configure() {
        clinux_set_nonblocking(socket)
        clinux_tcp_nodelay(socket)
    }

    /// Waits for the socket until the deadline.
    /// - Throws: `unreachable` when the time is over; the code of `close` when this side closes a link that is not
    ///   open.
    func wait(_ events: Int32, until deadline: Int64) throws(LinkStop) {
        while true {
            if !isOpen, let code = link.closeCode { throw LinkStop(.closed(code)) }
            let left = deadline - now
            guard left > 0 else { throw LinkStop(.unreachable) }
            if poll(events, left) { return }
        }
    }

    /// Whether the socket is ready. Returns early when the link is woken.
    @discardableResult
    func poll(_ events: Int32, _ milliseconds: Int64) -> Bool {
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

    // MARK: TLS

    func handshake(isServer: Bool, until deadline: Int64) throws(LinkStop) {
        let made: TLSContext
        do throws(CryptoError) {
            made = try TLSContext(settings.identity, settings.security, isServer: isServer)
        } catch {
            throw LinkStop(.failed("TLS: \(error)"))
        }
        context = made
        tls = SSL_new(made.pointer)
        guard tls != nil, SSL_set_fd(tls, socket) == 1 else { throw LinkStop(.failed("SSL_new")) }
        while true {
            ERR_clear_error()
            let result = isServer ? SSL_accept(tls) : SSL_connect(tls)
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
        guard let context, let tls else { return .refused }
        if context.isPairing { return !isSecure && context.hasWrongCode ? .wrongCode : .refused }
        // A client that has sent its last message has verified the signature of the server.
        let isProved = SSL_is_server(tls) == 0 && (isSecure || SSL_get_state(tls) == TLS_ST_CW_FINISHED)
        return isProved ? .rejected : .refused
    }

    func write(_ bytes: [UInt8]) throws(LinkStop) {
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

    /// Returns the received bytes; nil if none are available yet.
    func receive() throws(LinkStop) -> ArraySlice<UInt8>? {
        ERR_clear_error()
        let count = chunk.withUnsafeMutableBytes { SSL_read(tls, $0.baseAddress, Int32($0.count)) }
        if count > 0 { return chunk.prefix(Int(count)) }
        switch SSL_get_error(tls, count) {
        case SSL_ERROR_WANT_READ: return nil
        default: throw LinkStop(failure())
        }
    }

    /// Sends close_notify. The C function is SSL_shutdown.
    func shutDown() {
        SSL_shutdown(tls)
        ERR_clear_error()
    }
}
