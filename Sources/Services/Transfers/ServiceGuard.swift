// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
import HTTP

/// Configures the TLS connections of one HTTP session and checks each after its handshake, before anything is sent. No
/// other file calls libssl.
///
/// The issuer of a TLS certificate is not checked. An eID-Server is identified by the hash of its certificate in the
/// description, which the terminal certificate confirms. TR-03124-1, 2.7.3. Every other rule for certificates applies.
final class ServiceGuard {
    private let profile: TLSProfile
    private let preSharedKey: TLSTrust.PreSharedKey?
    /// In developer mode a broken rule is only logged.
    private let isDeveloperMode: Bool

    /// The name that the certificates of the next connections must have.
    private var host = ""
    /// What the next connections must fulfil.
    var conditions = TLSConditions()

    /// The rule that the last handshake broke; nil after a good one.
    private(set) var fault: TLSFault?
    /// The connections of the transfer.
    private(set) var handshakes: [TLSHandshake] = []
    /// The faults of the transfer that developer mode ignores.
    private(set) var notes: [String] = []

    init(_ preSharedKey: TLSTrust.PreSharedKey?, isDeveloperMode: Bool) {
        profile = preSharedKey == nil ? .standard : .preSharedKey
        self.preSharedKey = preSharedKey
        self.isDeveloperMode = isDeveloperMode
    }

    func reset(host: String) { (self.host, fault, handshakes, notes) = (host, nil, [], []) }

    // MARK: Before the handshake

    /// Configures a new SSL_CTX; false when libssl lacks what the profile needs. The guard must outlive its connections.
    func prepare(_ context: OpaquePointer) -> Bool {
        let owner = Unmanaged.passUnretained(self).toOpaque()
        tls_set_owner(context, owner)
        // Key sizes are checked after the handshake. A limit in libssl would end the handshake without a reason.
        SSL_CTX_set_security_level(context, 1)
        // A server could begin handshakes without end.
        tls_refuse_renegotiation(context)
        guard tls_set_version(context, TLS1_2_VERSION) == 1, SSL_CTX_set_cipher_list(context, profile.suites) == 1,
            tls_set_signatures(context, profile.signatures) == 1, tls_ask_for_status(context) == 1
        else { return false }
        if let groups = profile.groups, tls_set_groups(context, groups) != 1 { return false }
        if preSharedKey != nil {
            SSL_CTX_set_psk_client_callback(context) { connection, _, identity, identityCount, key, keyCount in
                guard let connection, let identity, let key else { return 0 }
                return ServiceGuard.of(connection)?.providePreSharedKey(identity, identityCount, key, keyCount) ?? 0
            }
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, owner in
                guard let store, let owner else { return 0 }
                return Unmanaged<ServiceGuard>.fromOpaque(owner).takeUnretainedValue().verify(store)
            },
            owner
        )
        SSL_CTX_set_info_callback(context) { connection, event, _ in
            guard let connection, event & SSL_CB_HANDSHAKE_DONE != 0 else { return }
            ServiceGuard.of(connection)?.handshakeDone(connection)
        }
        return true
    }

    private static func of(_ connection: OpaquePointer) -> ServiceGuard? {
        tls_owner(connection).map { Unmanaged<ServiceGuard>.fromOpaque($0).takeUnretainedValue() }
    }

    private func providePreSharedKey(
        _ identity: UnsafeMutablePointer<CChar>,
        _ identityCount: UInt32,
        _ key: UnsafeMutablePointer<UInt8>,
        _ keyCount: UInt32
    ) -> UInt32 {
        guard let preSharedKey, preSharedKey.identity.count < Int(identityCount) else { return 0 }
        return preSharedKey.withKey { bytes in
            guard bytes.count <= Int(keyCount) else { return 0 }
            for (index, byte) in preSharedKey.identity.enumerated() { identity[index] = CChar(bitPattern: byte) }
            identity[preSharedKey.identity.count] = 0
            UnsafeMutableRawBufferPointer(start: key, count: Int(keyCount)).copyMemory(from: bytes)
            return UInt32(bytes.count)
        }
    }

    // MARK: In the handshake

    /// Checks the certificate without any trusted authority. The C function is X509_verify_cert.
    private func verify(_ store: OpaquePointer) -> Int32 {
        X509_STORE_CTX_set_verify_cb(store) { isGood, store in
            isGood == 1 || ServiceGuard.ignoredErrors.contains(X509_STORE_CTX_get_error(store)) ? 1 : 0
        }
        if X509_verify_cert(store) == 1 { return 1 }
        let code = X509_STORE_CTX_get_error(store)
        let words = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
        return record(.certificate(words)) ? 0 : 1
    }

    /// Errors which say that the authority is unknown or not meant for this use.
    private static let ignoredErrors: Set<Int32> = [
        X509_V_OK, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
        X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
        X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_UNTRUSTED, X509_V_ERR_INVALID_PURPOSE,
    ]

    /// Records a broken rule.
    /// - Returns: false in developer mode, which only logs the fault.
    @discardableResult
    private func record(_ fault: TLSFault) -> Bool {
        if isDeveloperMode {
            if notes.count < NetworkMessage.maximumHandshakes { notes.append("developer mode: \(host): \(fault)") }
            return false
        }
        if self.fault == nil { self.fault = fault }
        return true
    }

    // MARK: After the handshake

    private func handshakeDone(_ connection: OpaquePointer) {
        guard handshakes.count < NetworkMessage.maximumHandshakes else {
            fault = fault ?? .certificate("the server makes too many handshakes")
            return
        }
        guard let certificate = SSL_get0_peer_certificate(connection) else {
            record(.certificate("the server sent no certificate"))
            return
        }
        checkName(certificate)
        if saysRevoked(connection) { record(.certificate("the certificate is revoked")) }
        guard let key = X509_get0_pubkey(certificate) else {
            record(.certificate("the key of the certificate cannot be read"))
            return
        }
        let handshake = TLSHandshake(
            certificate: Self.encoded(certificate),
            key: Self.key(key),
            ephemeralKey: Self.ephemeralKey(connection),
            isResumed: SSL_session_reused(connection) == 1,
            version: UInt16(truncatingIfNeeded: SSL_version(connection))
        )
        handshakes.append(handshake)
        for fault in conditions.faults(of: handshake, agreesKey: preSharedKey == nil) { record(fault) }
    }

    private func checkName(_ certificate: OpaquePointer) {
        let isAddress = X509_check_ip_asc(certificate, host, 0)
        // -2 means that the host is not an IP address.
        let result = isAddress == -2 ? X509_check_host(certificate, host, host.utf8.count, 0, nil) : isAddress
        if result != 1 { record(.certificate("the certificate is for another host")) }
    }

    private static func ephemeralKey(_ connection: OpaquePointer) -> TLSHandshake.Key? {
        guard let key = tls_ephemeral_key(connection) else { return nil }
        defer { EVP_PKEY_free(key) }
        return Self.key(key)
    }

    private static func key(_ key: OpaquePointer) -> TLSHandshake.Key {
        TLSHandshake.Key(isElliptic: EVP_PKEY_get_base_id(key) == EVP_PKEY_EC, bits: Int(EVP_PKEY_get_bits(key)))
    }

    /// Whether a stapled OCSP response says that the certificate is revoked. Its signature is not checked, since the server
    /// itself presents the response. RFC 6066, 8.
    private func saysRevoked(_ connection: OpaquePointer) -> Bool {
        var bytes: UnsafePointer<UInt8>?
        let count = tls_status_response(connection, &bytes)
        guard count > 0, bytes != nil else { return false }
        defer { ERR_clear_error() }
        guard let response = d2i_OCSP_RESPONSE(nil, &bytes, Int(count)) else { return false }
        defer { OCSP_RESPONSE_free(response) }
        guard let basic = OCSP_response_get1_basic(response) else { return false }
        defer { OCSP_BASICRESP_free(basic) }
        return (0..<OCSP_resp_count(basic)).contains { index in
            OCSP_single_get0_status(OCSP_resp_get0(basic, index), nil, nil, nil, nil) == V_OCSP_CERTSTATUS_REVOKED
        }
    }

    private static func encoded(_ certificate: OpaquePointer) -> [UInt8] {
        let count = i2d_X509(certificate, nil)
        guard count > 0 else { return [] }
        var out = [UInt8](repeating: 0, count: Int(count))
        out.withUnsafeMutableBufferPointer { buffer in
            var cursor = buffer.baseAddress
            _ = i2d_X509(certificate, &cursor)
        }
        return out
    }
}
