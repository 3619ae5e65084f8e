// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
import Concurrency
import Crypto
import ReadersRemote

/// TLS over one connected socket. No function waits for the other side.
final class TLSEndpoint {
    enum Progress {
        case done
        case waits(Loop.Interest)
        case lost
    }

    enum Received {
        case bytes([UInt8])
        case nothing
        case lost
    }

    private let context: TLSContext
    private let pointer: OpaquePointer
    private let isServer: Bool
    /// Whether the handshake is complete.
    private var isSecure = false

    /// The size of the largest record. RFC 5246, 6.2.1.
    private static let maximumRecord = 16_384

    init(
        socket: Int32,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        isServer: Bool
    ) throws(CryptoError) {
        self.isServer = isServer
        context = try TLSContext(identity, security, isServer: isServer)
        pointer = try check(SSL_new(context.pointer))
        try check(SSL_set_fd(pointer, socket))
        if isServer { SSL_set_accept_state(pointer) } else { SSL_set_connect_state(pointer) }
    }

    deinit { SSL_free(pointer) }

    /// The fingerprint of the other device, after the handshake.
    var device: String { context.device ?? "" }

    /// Why the connection was lost before the WebSocket was open.
    var refusal: RemoteLink.Ending {
        if context.hasRefused { return .untrusted }
        if context.isPairing { return !isSecure && context.hasWrongCode ? .wrongCode : .refused }
        // A client that has sent its last message has verified the signature of the server.
        let isProved = !isServer && (isSecure || SSL_get_state(pointer) == TLS_ST_CW_FINISHED)
        return isProved ? .rejected : .refused
    }

    func handshake() -> Progress {
        ERR_clear_error()
        tls_limit_reads(pointer)
        let result = SSL_do_handshake(pointer)
        isSecure = result == 1
        return progress(result)
    }

    /// Writes all bytes, or none that the caller may forget. Call it again with at least the same bytes when it waits.
    func write(_ bytes: [UInt8]) -> Progress {
        ERR_clear_error()
        return progress(bytes.withUnsafeBytes { SSL_write(pointer, $0.baseAddress, Int32($0.count)) })
    }

    private func progress(_ result: Int32) -> Progress {
        if result > 0 { return .done }
        return switch SSL_get_error(pointer, result) {
        case SSL_ERROR_WANT_READ: .waits(.read)
        case SSL_ERROR_WANT_WRITE: .waits(.write)
        default: .lost
        }
    }

    func receive() -> Received {
        ERR_clear_error()
        tls_limit_reads(pointer)
        var result: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.maximumRecord) { buffer, count in
            result = SSL_read(pointer, buffer.baseAddress, Int32(buffer.count))
            count = Int(max(result, 0))
        }
        if result > 0 { return .bytes(bytes) }
        return SSL_get_error(pointer, result) == SSL_ERROR_WANT_READ ? .nothing : .lost
    }

    /// Sends close_notify. The C function is SSL_shutdown.
    func shutDown() {
        SSL_shutdown(pointer)
        ERR_clear_error()
    }
}
