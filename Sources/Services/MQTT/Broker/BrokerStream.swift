// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
import Glibc
import Host

/// Why there is no connection to the broker any more.
package enum BrokerEnding: Equatable, Sendable {
    /// The broker has closed it, and has said nothing.
    case closed
    /// In words for the log.
    case fault(String)

    package var text: String {
        switch self {
        case .closed: "the broker has closed the connection"
        case .fault(let text): text
        }
    }
}

/// The bytes between this host and the broker: a connected socket, with TLS if the settings say so. No call waits.
final class BrokerStream {
    enum Progress {
        /// The bytes that were read or written.
        case moved(Int)
        /// The socket must be readable first.
        case waitsToRead
        case waitsToWrite
        case ended(BrokerEnding)
    }

    /// Owned by this object.
    let descriptor: Int32
    private let settings: TLSSettings?
    private let host: String
    /// nil without TLS.
    private var tls: OpaquePointer?
    private var isSecure = false

    /// Takes over a connected socket that does not block.
    init(_ descriptor: Int32, _ settings: TLSSettings?, host: String) {
        self.descriptor = descriptor
        self.settings = settings
        self.host = host
        guard let settings else { return }
        tls = SSL_new(settings.context)
        SSL_set_fd(tls, descriptor)
        SSL_set_connect_state(tls)
        // An address has no name for SNI, and is compared with the addresses in the certificate.
        if X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host) != 1, let tls {
            SSL_set1_host(tls, host)
            _ = tls_set_server_name(tls, host)
        }
        ERR_clear_error()
    }

    deinit {
        SSL_free(tls)
        close(descriptor)
    }

    /// Makes the handshake of TLS; `.moved(0)` when it is complete.
    func handshake() -> Progress {
        guard let settings, !isSecure else { return .moved(0) }
        guard let tls else { return .ended(.fault("TLS cannot be used: no memory is left")) }
        ERR_clear_error()
        errno = 0
        tls_limit_reads(tls)
        let result = SSL_do_handshake(tls)
        if result == 1 {
            isSecure = true
            return .moved(0)
        }
        if let refusal = settings.refusal(SSL_get_verify_result(tls), host: host) {
            ERR_clear_error()
            return .ended(.fault(refusal))
        }
        let isReset = ERR_peek_error() == 0 && errno == ECONNRESET
        let progress = progress(result, settings)
        guard case .ended(let reason) = progress, reason == .closed || isReset else { return progress }
        let text = "\(BrokerEnding.closed.text) during the TLS handshake: perhaps it does not speak TLS at this port"
        return .ended(.fault(text))
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Progress {
        errno = 0
        guard let settings, let tls else {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            return count == 0 ? .ended(.closed) : plain(count, .waitsToRead)
        }
        ERR_clear_error()
        tls_limit_reads(tls)
        let count = SSL_read(tls, buffer.baseAddress, Int32(clamping: buffer.count))
        return count > 0 ? .moved(Int(count)) : progress(count, settings)
    }

    /// Writes as much as the socket takes. Call it again with at least the same bytes when it waits.
    func write(_ bytes: UnsafeRawBufferPointer) -> Progress {
        errno = 0
        guard let settings else {
            return plain(send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)), .waitsToWrite)
        }
        ERR_clear_error()
        let count = SSL_write(tls, bytes.baseAddress, Int32(clamping: bytes.count))
        return count > 0 ? .moved(Int(count)) : progress(count, settings)
    }

    /// Says the end of TLS.
    func shutDown() {
        guard isSecure else { return }
        SSL_shutdown(tls)
        ERR_clear_error()
    }

    private func plain(_ count: Int, _ waiting: Progress) -> Progress {
        if count >= 0 { return .moved(count) }
        if errno == EAGAIN || errno == EINTR { return waiting }
        return .ended(Self.broken)
    }

    private func progress(_ result: Int32, _ settings: TLSSettings) -> Progress {
        switch SSL_get_error(tls, result) {
        case SSL_ERROR_WANT_READ: return .waitsToRead
        case SSL_ERROR_WANT_WRITE: return .waitsToWrite
        case SSL_ERROR_ZERO_RETURN: return .ended(.closed)
        case SSL_ERROR_SYSCALL where ERR_peek_error() == 0:
            return .ended(errno == 0 ? .closed : Self.broken)
        case SSL_ERROR_SSL where ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING:
            ERR_clear_error()
            return .ended(.closed)
        default: return .ended(.fault(settings.lastFault()))
        }
    }

    /// The failure of the last call.
    private static var broken: BrokerEnding { .fault("the connection to the broker is broken: \(errorText())") }
}
