// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
import Dispatch
import EID
import EService
import Foundation
import HTTP
import Synchronization
import TestSupport
import Testing

@testable import EIDServer

/// What connections offer and accept. The server uses libssl.
@Suite(.timeLimit(.minutes(5)))
struct ConnectionTests {
    /// A server that answers 404. A client that gets this answer has accepted the connection.
    private final class Peer {
        let listener: Listener
        let context: TLSContext

        init(
            _ suites: String = TLSProfile.webCiphers,
            _ certificate: CertificateName = .web,
            usesPSK: Bool = false,
            answer: @escaping Listener.Handler = { _, _ in HTTPResponse(404) },
            context change: (OpaquePointer) throws -> Void = { _ in }
        ) throws {
            var profile = TLSProfile(certificate: certificate)
            (profile.ciphers, profile.usesPSK) = (suites, usesPSK)
            context = try TLSContext(profile, try TLSCertificates()) { _ in nil }
            try change(context.pointer)
            listener = try Listener(.tls(context, answer))
        }

        deinit { listener.close() }

        func session(_ host: String = "localhost", isDeveloperMode: Bool = false) throws -> EServiceSession {
            let url = "https://\(host):\(listener.port)/token"
            return EServiceSession(
                tcTokenURL: url,
                isDeveloperMode: isDeveloperMode,
                try ServiceFixture.configuration()
            )
        }

        func reason(_ host: String = "localhost", isDeveloperMode: Bool = false) async throws -> FailureCode? {
            let session = try session(host, isDeveloperMode: isDeveloperMode)
            do throws(EServiceFailure) {
                _ = try await session.request()
                return nil
            } catch {
                return error.reason
            }
        }
    }

    @Test(
        "only the cipher suites of TR-03116-4 are accepted",
        arguments: [
            ("ECDHE-RSA-AES256-GCM-SHA384", .web, true), ("DHE-RSA-AES256-GCM-SHA384", .web, true),
            ("ECDHE-RSA-AES128-GCM-SHA256", .web, true), ("DHE-RSA-AES128-GCM-SHA256", .web, true),
            ("ECDHE-ECDSA-AES256-GCM-SHA384", .webEC, true), ("ECDHE-ECDSA-AES128-GCM-SHA256", .webEC, true),
            ("ECDHE-RSA-AES256-SHA384", .web, false), ("ECDHE-RSA-AES128-SHA", .web, false),
            ("DHE-RSA-AES256-SHA256", .web, false), ("AES256-GCM-SHA384", .web, false),
            ("ECDHE-RSA-CHACHA20-POLY1305", .web, false), ("ECDHE-ECDSA-AES256-CCM", .webEC, false),
        ] as [(String, CertificateName, Bool)]
    )
    func suites(suite: String, certificate: CertificateName, isSpoken: Bool) async throws {
        let reason = try await Peer(suite, certificate).reason()
        #expect(reason == (isSpoken ? .getTcTokenClientError : .getTcTokenNetworkError))
    }

    @Test(
        "only the curves of TR-03116-4 are accepted",
        arguments: [
            ("brainpoolP512r1", true), ("brainpoolP384r1", true), ("brainpoolP256r1", true), ("secp384r1", true),
            ("prime256v1", true), ("secp521r1", false), ("X25519", false), ("secp224r1", false),
        ]
    )
    func curves(name: String, isAgreed: Bool) async throws {
        let peer = try Peer(
            "ECDHE-RSA-AES256-GCM-SHA384",
            context: { context in
                var text = Array(name.utf8CString)
                try #require(SSL_CTX_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, &text) == 1)
            }
        )
        #expect(try await peer.reason() == (isAgreed ? .getTcTokenClientError : .getTcTokenNetworkError))
    }

    @Test(
        "a key agreement needs 3000 bits",
        arguments: [
            ("ffdhe2048", false, .getTcTokenInvalidEphemeralKeyLength), ("ffdhe3072", false, .getTcTokenClientError),
            ("ffdhe2048", true, .getTcTokenClientError),
        ] as [(String, Bool, FailureCode)]
    )
    func ephemeralKey(group: String, isDeveloperMode: Bool, reason: FailureCode) async throws {
        let peer = try Peer(
            "DHE-RSA-AES256-GCM-SHA384",
            context: { context in
                SSL_CTX_ctrl(context, SSL_CTRL_SET_DH_AUTO, 0, nil)
                let maker = try #require(EVP_PKEY_CTX_new_from_name(nil, "DH", nil))
                defer { EVP_PKEY_CTX_free(maker) }
                var key: OpaquePointer?
                try #require(EVP_PKEY_keygen_init(maker) == 1)
                try #require(EVP_PKEY_CTX_set_group_name(maker, group) == 1)
                try #require(EVP_PKEY_generate(maker, &key) == 1)
                // The context takes ownership of the key.
                try #require(SSL_CTX_set0_tmp_dh_pkey(context, key) == 1)
            }
        )
        #expect(try await peer.reason(isDeveloperMode: isDeveloperMode) == reason)
    }

    @Test("a certificate has to name the address of the server")
    func addresses() async throws {
        let peer = try Peer()
        #expect(try await peer.reason("127.0.0.1") == .getTcTokenClientError)
        let other = try Peer(TLSProfile.webCiphers, .wrongHost)
        #expect(try await other.reason("127.0.0.1") == .getTcTokenNetworkError)
    }

    @Test("a server that staples a response about its own revocation is refused")
    func revoked() async throws {
        let peer = try Peer(context: { context in
            let status: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { connection, _ in
                guard let response = ConnectionTests.revocation(connection) else { return SSL_TLSEXT_ERR_NOACK }
                let copy = CRYPTO_malloc(response.count, "", 0)
                copy?.copyMemory(from: response, byteCount: response.count)
                SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP, response.count, copy)
                return SSL_TLSEXT_ERR_OK
            }
            typealias Plain = @convention(c) () -> Void
            SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB, unsafeBitCast(status, to: Plain.self))
        })
        #expect(try await peer.reason() == .getTcTokenNetworkError)
    }

    /// An OCSP response that revokes the server's certificate, signed with the server's key.
    private static func revocation(_ connection: OpaquePointer?) -> [UInt8]? {
        guard let certificate = SSL_get_certificate(connection), let key = SSL_get_privatekey(connection),
            let basic = OCSP_BASICRESP_new(), let identifier = OCSP_cert_to_id(EVP_sha1(), certificate, certificate),
            let now = X509_gmtime_adj(nil, 0)
        else { return nil }
        defer {
            OCSP_BASICRESP_free(basic)
            OCSP_CERTID_free(identifier)
            ASN1_STRING_free(now)
        }
        guard
            OCSP_basic_add1_status(
                basic,
                identifier,
                V_OCSP_CERTSTATUS_REVOKED,
                OCSP_REVOKED_STATUS_NOSTATUS,
                now,
                now,
                nil
            )
                != nil, OCSP_basic_sign(basic, certificate, key, EVP_sha256(), nil, 0) == 1,
            let response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
        else { return nil }
        defer { OCSP_RESPONSE_free(response) }
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = i2d_OCSP_RESPONSE(response, &bytes)
        guard count > 0, let bytes else { return nil }
        defer { CRYPTO_free(bytes, "", 0) }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }

    // MARK: What is offered

    /// The fields of a ClientHello. RFC 5246, 7.4.1.2.
    private struct ClientHello: Sendable {
        var suites: [UInt16] = []
        var extensions: [UInt32: [UInt8]] = [:]

        static let last = Mutex<ClientHello?>(nil)

        /// Records the hello of each client.
        static func record(_ context: OpaquePointer) {
            SSL_CTX_set_client_hello_cb(
                context,
                { connection, _, _ in
                    var hello = ClientHello()
                    var bytes: UnsafePointer<UInt8>?
                    var count = SSL_client_hello_get0_ciphers(connection, &bytes)
                    hello.suites = ClientHello.numbers(Array(UnsafeBufferPointer(start: bytes, count: count)))
                    for type in 0..<UInt32(64) where SSL_client_hello_get0_ext(connection, type, &bytes, &count) == 1 {
                        hello.extensions[type] = Array(UnsafeBufferPointer(start: bytes, count: count))
                    }
                    ClientHello.last.withLock { $0 = hello }
                    return SSL_CLIENT_HELLO_SUCCESS
                },
                nil
            )
        }

        static func numbers(_ bytes: [UInt8]) -> [UInt16] {
            stride(from: 0, to: bytes.count - 1, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        }

        /// The list in an extension, without its length.
        func list(_ type: UInt32) -> [UInt16]? { extensions[type].map { Self.numbers(Array($0.dropFirst(2))) } }
    }

    /// Extension types. RFC 6066, RFC 8422, RFC 5246, RFC 7301.
    private static let (serverName, status, groups, signatures, protocols): (UInt32, UInt32, UInt32, UInt32, UInt32) =
        (0, 5, 10, 13, 16)

    @Test("a ClientHello offers exactly the values of TR-03116-4, with and without a pre-shared key")
    func offers() async throws {
        let paos = try Peer("RSA-PSK-AES256-GCM-SHA384", .psk, usesPSK: true, context: ClientHello.record)
        let token = """
            <TCTokenType><ServerAddress>https://localhost:\(paos.listener.port)/</ServerAddress>\
            <SessionIdentifier>1</SessionIdentifier><RefreshAddress>https://localhost/</RefreshAddress>\
            <Binding>urn:liberty:paos:2006-08</Binding>\
            <PathSecurity-Parameters><PSK>00</PSK></PathSecurity-Parameters></TCTokenType>
            """
        let answer: Listener.Handler = { _, _ in HTTPResponse(200, "text/xml", Array(token.utf8)) }
        let web = try Peer(answer: answer, context: ClientHello.record)
        let session = try web.session()
        // Records the hello for the service first, then the hello for the eID-Server, which knows no key and refuses.
        let refused = try Peer(context: ClientHello.record)
        _ = try await refused.reason()
        let standard = try #require(ClientHello.last.withLock { $0 })
        #expect(standard.suites == [0xC02C, 0xC030, 0x009F, 0xC02B, 0xC02F, 0x009E, 0x00FF])
        #expect(standard.list(Self.groups) == [28, 27, 26, 24, 23])
        #expect(
            standard.list(Self.signatures) == [
                0x0601, 0x0501, 0x0401, 0x0602, 0x0502, 0x0402, 0x0603, 0x0503, 0x0403,
            ]
        )
        #expect(standard.extensions[Self.status] != nil)
        #expect(standard.extensions[Self.serverName] != nil)
        #expect(standard.extensions[Self.protocols] == nil)

        await #expect(throws: EServiceFailure(.genericSendReceiveTLSError, .tls)) { try await session.request() }
        let keyed = try #require(ClientHello.last.withLock { $0 })
        #expect(keyed.suites == [0x00AD, 0x00AC, 0x0095, 0x00FF])
        #expect(keyed.extensions[Self.groups] == nil)
        #expect(keyed.list(Self.signatures) == [0x0601, 0x0501, 0x0401])
    }

    // MARK: Cancellation

    @Test(
        "cancelling the task, or closing the session, ends a request that waits for a server",
        arguments: [true, false]
    )
    func cancellation(byTask: Bool) async throws {
        let (asked, said) = AsyncStream<Void>.makeStream()
        let release = DispatchSemaphore(value: 0)
        defer { release.signal() }
        let peer = try Peer(
            answer: { _, _ in
                said.yield()
                release.wait()
                return HTTPResponse(404)
            }
        )
        let session = try peer.session()
        let task = Task {
            do throws(EServiceFailure) {
                _ = try await session.request()
                return FailureCode?.none
            } catch {
                return error.reason
            }
        }
        for await _ in asked { break }
        if byTask { task.cancel() } else { session.close() }
        // Otherwise the request would wait until the time limit of the test.
        #expect(await task.value == .userCancelled)
        if !byTask {
            await #expect(throws: EServiceFailure(.userCancelled, .cancelledByUser)) { try await session.request() }
        }
    }

    @Test("cancelling the search for the refresh address ends it")
    func cancelledSearch() async throws {
        let (asked, said) = AsyncStream<Void>.makeStream()
        let release = DispatchSemaphore(value: 0)
        defer { release.signal() }
        let port = Mutex<UInt16>(0)
        let peer = try Peer(
            answer: { request, _ in
                guard request.path == "/token" else {
                    said.yield()
                    release.wait()
                    return HTTPResponse(404)
                }
                // An invalid TcToken with usable addresses, which have another name and so another origin.
                let elements = ["RefreshAddress", "CommunicationErrorAddress"].map { name in
                    "<\(name)>https://127.0.0.1:\(port.withLock { $0 })/\(name)</\(name)>"
                }
                var response = HTTPResponse(200)
                response.body = Array("<TCTokenType>\(elements.joined())</TCTokenType>".utf8)
                return response
            }
        )
        port.withLock { $0 = peer.listener.port }
        let session = try peer.session()
        await #expect(throws: EServiceFailure(.getTcTokenInvalidData, .invalidTcToken)) { try await session.request() }
        let task = Task { await session.refreshAddress(after: .ok) }
        for await _ in asked { break }
        task.cancel()
        let outcome = await task.value
        #expect(outcome.failure?.reason == .userCancelled)
        #expect(outcome.url?.contains("/CommunicationErrorAddress?ResultMajor=error") == true)
    }

    @Test("a cancellation is reported to a server that waits for an answer")
    func reportedCancellation() async throws {
        let session = try ServiceFixture.session()
        let output = MadeUpCard.eac1(try await session.request())
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            do throws(EServiceFailure) {
                _ = try await session.sendEAC1(output)
                return FailureCode?.none
            } catch {
                return error.reason
            }
        }
        #expect(await task.value == .userCancelled)
        let last = await session.fail(ECardResult(.cancelledByUser))
        #expect(last?.isError == true && last?.origin == .server)
        #expect(await session.fail(ECardResult(.cancelledByUser)) == nil, "the server still waits for an answer")
    }

    @Test("an error of the card is reported in the answer that the server waits for")
    func cardError() async throws {
        let session = try ServiceFixture.session()
        _ = try await session.sendEAC1(MadeUpCard.eac1(try await session.request()))
        let last = await session.fail(ECardResult(.cardRemoved))
        #expect(last?.minor == .cancellationByUser)
        let outcome = await session.refreshAddress(after: ECardResult(.cardRemoved))
        #expect(outcome.url?.hasSuffix("?ResultMajor=error&ResultMinor=cancellationByUser") == true)
        let report = try ServiceFixture.report(outcome)
        #expect(report.contains("cancellationByUser") && report.contains(#""notes":[]"#))
    }

    @Test(
        "an invalid message of the server is answered with an error",
        arguments: ["eac1-chat-garbage", "eac2-no-key"]
    )
    func errorAnswered(fault: String) async throws {
        let session = try ServiceFixture.session(["fault": fault])
        let failure = try #require(await MadeUpCard.authenticate(session))
        let outcome = await session.refreshAddress(after: failure.result)
        let report = try ServiceFixture.report(outcome)
        #expect(report.contains("/al/common#internalError") && report.contains(#""notes":[]"#))
    }

    @Test(
        "a missing and an invalid address have different reasons",
        arguments: [
            ("", .parseTcTokenMissingURL), ("localhost", .parseTcTokenInvalidURL),
            ("https://", .parseTcTokenInvalidURL),
            ("file:///etc/passwd", .getTcTokenInvalidURL), ("http://localhost/", .getTcTokenInvalidURL),
        ] as [(String, FailureCode)]
    )
    func invocation(url: String, reason: FailureCode) async throws {
        let session = EServiceSession(tcTokenURL: url, isDeveloperMode: false, try ServiceFixture.configuration())
        do throws(EServiceFailure) {
            _ = try await session.request()
            Issue.record("accepted")
        } catch {
            #expect(error.reason == reason)
        }
        #expect(await session.refreshAddress(after: .ok) == RefreshOutcome(url: nil))
    }

    @Test("without badged-network every step fails")
    func noProgram() async throws {
        let session = try ServiceFixture.session { $0.network.socket = "/nonexistent/badged-network" }
        let failure = await #expect(throws: EServiceFailure.self) { try await session.request() }
        #expect(failure?.reason == .getTcTokenNetworkError)
        #expect(failure?.status.network == .unavailable)
        #expect(await session.fail(ECardResult(.unknown)) == nil)
        #expect(await session.refreshAddress(after: .ok) == RefreshOutcome(url: nil))
    }

    @Test("steps before the first one fail")
    func outOfTurn() async throws {
        let session = try ServiceFixture.session()
        await #expect(throws: EServiceFailure(.genericSendReceiveNetworkError, .connection)) {
            try await session.sendEAC2(MadeUpCard.eac2)
        }
        #expect(await session.fail(ECardResult(.unknown)) == nil)
    }
}
