// SPDX-License-Identifier: GPL-3.0-or-later
import CTLS
import Glibc

/// The TLS settings of one listener.
struct TLSProfile: Sendable {
    enum Version: Int, Sendable {
        case v1_1 = 0x0302
        case v1_2 = 0x0303
        case v1_3 = 0x0304
    }

    var certificate: CertificateName
    /// A second certificate with another kind of key.
    var alternative: CertificateName?
    var ciphers = TLSProfile.webCiphers
    var minimum = Version.v1_2
    var maximum = Version.v1_2
    /// Whether clients use RSA-PSK with the key of their TcToken.
    var usesPSK = false
    /// Whether TLS sessions can be resumed.
    var resumes = true
    /// 0 makes libssl accept keys and versions that it refuses by default.
    var securityLevel: Int32 = 1

    /// The suites of an eService. TR-03124-1 2.3, TR-03116-4 4.
    static let webCiphers =
        "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256:"
        + "ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-AES128-GCM-SHA256"
    /// The groups of an eService, in its order of preference.
    static let groups = "P-256:brainpoolP256r1:P-384:brainpoolP384r1:brainpoolP512r1"
    static let pskCiphers =
        "RSA-PSK-AES256-GCM-SHA384:RSA-PSK-AES256-CBC-SHA384:RSA-PSK-AES128-GCM-SHA256:"
        + "RSA-PSK-AES128-CBC-SHA256:RSA-PSK-AES256-CBC-SHA"
}

/// The SSL_CTX of one listener.
final class TLSContext: @unchecked Sendable {
    /// Returns the pre-shared key of an identity; nil when there is none.
    typealias KeyLookup = @Sendable (String) -> [UInt8]?

    /// The SSL_CTX, which is thread-safe.
    let pointer: OpaquePointer
    /// Kept alive for the SSL_CTX.
    private let certificates: [TLSCertificate]
    private let keys: KeyLookup

    init(_ profile: TLSProfile, _ all: TLSCertificates, keys: @escaping KeyLookup) throws(TLSError) {
        pointer = try need(SSL_CTX_new(TLS_server_method()), "SSL_CTX_new")
        certificates = [profile.certificate, profile.alternative].compactMap { $0 }.map { all[$0] }
        self.keys = keys
        SSL_CTX_set_security_level(pointer, profile.securityLevel)
        // C macros over SSL_CTX_ctrl, which Swift does not import.
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, profile.minimum.rawValue, nil)
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MAX_PROTO_VERSION, profile.maximum.rawValue, nil)
        SSL_CTX_set_options(pointer, Self.noRenegotiation | Self.ownPreference | (profile.resumes ? 0 : Self.noTicket))
        if !profile.resumes { SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil) }
        let name = Array("badged-eidserver".utf8)
        try need(SSL_CTX_set_session_id_context(pointer, name, UInt32(name.count)), "session context")
        try need(SSL_CTX_set_cipher_list(pointer, profile.ciphers), "cipher suites")
        SSL_CTX_ctrl(pointer, SSL_CTRL_SET_DH_AUTO, 1, nil)
        try need(tls_set_groups(pointer, TLSProfile.groups), "groups")
        for certificate in certificates {
            try need(SSL_CTX_use_certificate(pointer, certificate.pointer), "certificate")
            try need(SSL_CTX_use_PrivateKey(pointer, certificate.key.pointer), "private key")
        }
        guard profile.usesPSK else { return }
        SSL_CTX_set_ex_data(pointer, 0, Unmanaged.passUnretained(self).toOpaque())
        SSL_CTX_set_psk_server_callback(pointer) { connection, identity, output, capacity in
            guard let connection, let identity, let output, let context = SSL_get_SSL_CTX(connection),
                let raw = SSL_CTX_get_ex_data(context, 0)
            else { return 0 }
            let owner = Unmanaged<TLSContext>.fromOpaque(raw).takeUnretainedValue()
            guard let key = owner.keys(String(cString: identity)), key.count <= capacity else { return 0 }
            for (index, byte) in key.enumerated() { output[index] = byte }
            return UInt32(key.count)
        }
    }

    deinit { SSL_CTX_free(pointer) }

    // SSL_OP_NO_TICKET, SSL_OP_CIPHER_SERVER_PREFERENCE and SSL_OP_NO_RENEGOTIATION are macros too.
    private static let noTicket: UInt64 = 1 << 14
    private static let ownPreference: UInt64 = 1 << 22
    private static let noRenegotiation: UInt64 = 1 << 30
}
