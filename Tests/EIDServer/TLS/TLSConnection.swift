// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
import Crypto
import Glibc

/// The result of a handshake.
struct Handshake: Sendable {
    let version: String
    let cipher: String
    let isResumed: Bool
    let serverName: String?
    let pskIdentity: String?
    /// SHA-256 of the TLS 1.2 master secret, which a resumed session shares with the original one.
    let session: [UInt8]

    /// Of a connection without TLS.
    static let none = Handshake(
        version: "",
        cipher: "",
        isResumed: false,
        serverName: nil,
        pskIdentity: nil,
        session: []
    )
}

/// The server's side of one connection. Calls block.
protocol ServerConnection {
    /// Reads the next bytes, at most 16 KiB; nil at the end or after an error.
    func read() -> [UInt8]?
    /// Writes all bytes; false after an error.
    func write(_ bytes: [UInt8]) -> Bool
    func close()
}

/// The server's side of a connection without TLS.
struct PlainConnection: ServerConnection {
    private let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    func read() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer.prefix(count)) : nil
    }

    func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    func close() { shutdown(descriptor, Int32(SHUT_WR)) }
}

/// The server's side of one TLS connection. Calls block.
final class TLSConnection: ServerConnection {
    private let context: TLSContext
    private let ssl: OpaquePointer
    private let descriptor: Int32
    let handshake: Handshake

    /// Makes the handshake on an accepted connection.
    init(_ context: TLSContext, _ descriptor: Int32) throws(TLSError) {
        self.context = context
        self.descriptor = descriptor
        guard let ssl = SSL_new(context.pointer) else { throw TLSError("SSL_new") }
        self.ssl = ssl
        SSL_set_fd(ssl, descriptor)
        ERR_clear_error()
        guard SSL_accept(ssl) == 1 else {
            let error = TLSError("handshake")
            SSL_free(ssl)
            throw error
        }
        handshake = Self.describe(ssl)
    }

    deinit { SSL_free(ssl) }

    private static func describe(_ ssl: OpaquePointer) -> Handshake {
        var secret = [UInt8](repeating: 0, count: 64)
        let count = SSL_get_session(ssl).map { SSL_SESSION_get_master_key($0, &secret, secret.count) } ?? 0
        return Handshake(
            version: String(cString: SSL_get_version(ssl)),
            cipher: SSL_get_current_cipher(ssl).map { String(cString: SSL_CIPHER_get_name($0)) } ?? "",
            isResumed: SSL_session_reused(ssl) == 1,
            serverName: SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) },
            pskIdentity: SSL_get_psk_identity(ssl).map { String(cString: $0) },
            session: (try? DigestAlgorithm.sha256.hash(Array(secret.prefix(count)))) ?? []
        )
    }

    /// Reads the next bytes, at most 16 KiB; nil at the end or after an error.
    func read() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        ERR_clear_error()
        let count = SSL_read(ssl, &buffer, Int32(buffer.count))
        guard count > 0 else { return nil }
        buffer.removeLast(buffer.count - Int(count))
        return buffer
    }

    /// Writes all bytes; false after an error.
    func write(_ bytes: [UInt8]) -> Bool {
        var remaining = bytes[...]
        ERR_clear_error()
        while !remaining.isEmpty {
            let count = remaining.withUnsafeBytes { SSL_write(ssl, $0.baseAddress, Int32(min($0.count, 16_384))) }
            guard count > 0 else { return false }
            remaining = remaining.dropFirst(Int(count))
        }
        return true
    }

    /// Sends close_notify.
    func close() { SSL_shutdown(ssl) }
}
