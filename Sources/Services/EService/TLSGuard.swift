// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Crypto

/// Sets up the TLS connections of one HTTP session and judges each right after its handshake, before anything is sent.
/// The only file that knows libssl.
///
/// Whom a certificate comes from does not matter here: an eID-Server is known by the hash of its certificate, which stands
/// in the description that the terminal's certificate vouches for. TR-03124-1, 2.7.3. All else about it has to be right.
final class TLSGuard {
    struct PreSharedKey {
        /// Without a zero byte, at most 255.
        let identity: [UInt8]
        let key: [UInt8]
    }

    /// What the description names: the hash function and the hashes.
    struct Listed {
        let digest: DigestAlgorithm
        let hashes: Set<[UInt8]>

        func contains(_ certificate: [UInt8]) -> Bool {
            guard let hash = try? digest.hash(certificate) else { return false }
            return hashes.contains(hash)
        }
    }

    private let profile: TLSProfile
    private let preSharedKey: PreSharedKey?
    /// Broken rules are logged and forgiven.
    private let isDeveloperMode: Bool
    private let log: @Sendable (String) -> Void

    /// Of the next connections: the name that the certificate must be for.
    var host = ""
    /// New connections must resume a session.
    var requiresResumption = false
    /// nil until the description is known.
    var listed: Listed?

    /// What the last handshake broke; nil after a good one.
    private(set) var fault: TLSFault?
    /// Each certificate of a server once, DER, in the order of their coming.
    private(set) var certificates: [[UInt8]] = []

    init(
        _ profile: TLSProfile,
        preSharedKey: PreSharedKey? = nil,
        isDeveloperMode: Bool,
        log: @escaping @Sendable (String) -> Void
    ) {
        (self.profile, self.preSharedKey) = (profile, preSharedKey)
        (self.isDeveloperMode, self.log) = (isDeveloperMode, log)
    }

    /// Begins a transfer: what was broken before does not count any more.
    func reset(host: String) { (self.host, fault) = (host, nil) }

    // MARK: Before the handshake

    /// Makes a new SSL_CTX ready; false: libssl lacks what the profile needs. The guard must outlive its connections.
    func prepare(_ context: OpaquePointer) -> Bool {
        let owner = Unmanaged.passUnretained(self).toOpaque()
        tls_set_owner(context, owner)
        // Sizes are judged after the handshake, with words; the library's own limit would only break it off.
        SSL_CTX_set_security_level(context, 1)
        guard tls_set_version(context, TLS1_2_VERSION) == 1, SSL_CTX_set_cipher_list(context, profile.suites) == 1,
            tls_set_signatures(context, profile.signatures) == 1, tls_ask_for_status(context) == 1
        else { return false }
        if let groups = profile.groups, tls_set_groups(context, groups) != 1 { return false }
        if preSharedKey != nil {
            SSL_CTX_set_psk_client_callback(context) { connection, _, identity, identityCount, key, keyCount in
                guard let connection, let identity, let key else { return 0 }
                return TLSGuard.of(connection)?.giveKey(identity, identityCount, key, keyCount) ?? 0
            }
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, owner in
                guard let store, let owner else { return 0 }
                return Unmanaged<TLSGuard>.fromOpaque(owner).takeUnretainedValue().verify(store)
            },
            owner
        )
        SSL_CTX_set_info_callback(context) { connection, event, _ in
            guard let connection, event & SSL_CB_HANDSHAKE_DONE != 0 else { return }
            TLSGuard.of(connection)?.handshakeDone(connection)
        }
        return true
    }

    private static func of(_ connection: OpaquePointer) -> TLSGuard? {
        tls_owner(connection).map { Unmanaged<TLSGuard>.fromOpaque($0).takeUnretainedValue() }
    }

    private func giveKey(
        _ identity: UnsafeMutablePointer<CChar>,
        _ identityCount: UInt32,
        _ key: UnsafeMutablePointer<UInt8>,
        _ keyCount: UInt32
    ) -> UInt32 {
        guard let preSharedKey, preSharedKey.identity.count < Int(identityCount),
            preSharedKey.key.count <= Int(keyCount)
        else { return 0 }
        for (index, byte) in preSharedKey.identity.enumerated() { identity[index] = CChar(bitPattern: byte) }
        identity[preSharedKey.identity.count] = 0
        for (index, byte) in preSharedKey.key.enumerated() { key[index] = byte }
        return UInt32(preSharedKey.key.count)
    }

    // MARK: In the handshake

    /// The C function is X509_verify_cert. There are no trusted authorities, so what is missing there is no fault.
    private func verify(_ store: OpaquePointer) -> Int32 {
        X509_STORE_CTX_set_verify_cb(store) { isGood, store in
            isGood == 1 || TLSGuard.tolerated.contains(X509_STORE_CTX_get_error(store)) ? 1 : 0
        }
        if X509_verify_cert(store) == 1 { return 1 }
        let code = X509_STORE_CTX_get_error(store)
        let words = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
        return breaks(.certificate(words)) ? 0 : 1
    }

    /// That its authority is unknown or not fit for this use. Everything else is a fault of the certificate.
    private static let tolerated: Set<Int32> = [
        X509_V_OK, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
        X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
        X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_UNTRUSTED, X509_V_ERR_INVALID_PURPOSE,
    ]

    /// Notes a fault; false when developer mode forgives it.
    private func breaks(_ fault: TLSFault) -> Bool {
        if isDeveloperMode {
            log("developer mode: \(host): \(fault)")
            return false
        }
        if self.fault == nil { self.fault = fault }
        return true
    }

    // MARK: After the handshake

    /// Also after a resumed one, which has no key agreement of its own.
    private func handshakeDone(_ connection: OpaquePointer) {
        guard let certificate = SSL_get0_peer_certificate(connection) else {
            _ = breaks(.certificate("the server has none"))
            return
        }
        let isResumed = SSL_session_reused(connection) == 1
        checkName(certificate)
        if let key = X509_get0_pubkey(certificate) {
            let bits = Int(EVP_PKEY_get_bits(key))
            if bits < Self.minimum(key) { _ = breaks(.certificateKeyTooShort(bits: bits)) }
        } else {
            _ = breaks(.certificate("its key cannot be read"))
        }
        if profile.groups != nil, !isResumed { checkEphemeralKey(connection) }
        if saysRevoked(connection) { _ = breaks(.certificate("its authority says that it is revoked")) }
        if requiresResumption, !isResumed { _ = breaks(.notResumed) }
        let der = Self.encoded(certificate)
        if !certificates.contains(der) { certificates.append(der) }
        if let listed, !listed.contains(der) { _ = breaks(.notListed) }
    }

    private func checkName(_ certificate: OpaquePointer) {
        let isAddress = X509_check_ip_asc(certificate, host, 0)
        // -2: the host is no IP address.
        let result = isAddress == -2 ? X509_check_host(certificate, host, host.utf8.count, 0, nil) : isAddress
        if result != 1 { _ = breaks(.certificate("it is for another host")) }
    }

    private func checkEphemeralKey(_ connection: OpaquePointer) {
        guard let key = tls_ephemeral_key(connection) else {
            _ = breaks(.ephemeralKeyTooShort(bits: 0))
            return
        }
        defer { EVP_PKEY_free(key) }
        let bits = Int(EVP_PKEY_get_bits(key))
        if bits < Self.minimum(key) { _ = breaks(.ephemeralKeyTooShort(bits: bits)) }
    }

    private static func minimum(_ key: OpaquePointer) -> Int {
        TLSProfile.minimumBits(isElliptic: EVP_PKEY_get_base_id(key) == EVP_PKEY_EC)
    }

    /// Is there a stapled OCSP response that says so? Its signature does not matter: it is the server itself that
    /// presents it. RFC 6066, 8.
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
