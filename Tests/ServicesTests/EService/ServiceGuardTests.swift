// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
import HTTP
import Testing

@testable import EIDServer
@testable import Transfers

@Suite("The handshakes of a server") struct ServiceGuardTests {
    /// A connection in memory, whose server can begin further handshakes.
    private final class Connection {
        let rules = ServiceGuard(nil, isDeveloperMode: false)
        let client: OpaquePointer
        private let server: OpaquePointer
        private let contexts: [OpaquePointer]

        init() throws {
            rules.reset(host: "localhost")
            let own = try #require(SSL_CTX_new(TLS_client_method()))
            let other = try #require(SSL_CTX_new(TLS_server_method()))
            contexts = [own, other]
            client = try #require(rules.prepare(own) ? SSL_new(own) : nil)
            let certificate = try TLSCertificate(TLSCertificate.Subject(), try TLSKey(.p256))
            SSL_CTX_use_certificate(other, certificate.pointer)
            SSL_CTX_use_PrivateKey(other, certificate.key.pointer)
            server = try #require(SSL_new(other))
            var (near, far): (OpaquePointer?, OpaquePointer?)
            try #require(BIO_new_bio_pair(&near, 0, &far, 0) == 1)
            SSL_set_bio(client, near, near)
            SSL_set_bio(server, far, far)
            SSL_set_connect_state(client)
            SSL_set_accept_state(server)
            turn()
        }

        deinit {
            for connection in [client, server] { SSL_free(connection) }
            for context in contexts { SSL_CTX_free(context) }
        }

        /// Lets both sides read until nothing more can come.
        private func turn() {
            var byte: UInt8 = 0
            for _ in 0..<10 { for side in [client, server] { SSL_read(side, &byte, 1) } }
            ERR_clear_error()
        }

        /// The number of handshakes of the client after the first.
        var renegotiations: Int { SSL_ctrl(client, SSL_CTRL_GET_TOTAL_RENEGOTIATIONS, 0, nil) }

        /// Has the server ask for a handshake.
        func renegotiate() {
            SSL_renegotiate(server)
            SSL_do_handshake(server)
            turn()
        }
    }

    @Test("a server may begin no second handshake, and many would be a fault")
    func renegotiation() throws {
        let connection = try Connection()
        #expect(connection.rules.handshakes.count == 1 && connection.rules.fault == nil)
        connection.renegotiate()
        #expect(connection.rules.fault == nil && connection.renegotiations == 0)

        let lax = try Connection()
        // SSL_OP_NO_RENEGOTIATION is a macro.
        SSL_clear_options(lax.client, 1 << 30)
        lax.renegotiate()
        #expect(lax.rules.handshakes.count == 2 && lax.rules.fault == nil && lax.renegotiations == 1)
        for _ in 0..<NetworkMessage.maximumHandshakes { lax.renegotiate() }
        #expect(lax.rules.handshakes.count == NetworkMessage.maximumHandshakes)
        #expect(lax.rules.fault == .certificate("the server makes too many handshakes"))
    }
}
