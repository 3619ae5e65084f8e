// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
import Crypto
import ReadersRemote
import Text

/// The TLS settings of one connection: TLS 1.2 with certificates of both sides.
final class TLSContext {
    let pointer: OpaquePointer
    private let identity: RemoteIdentity
    private let code: Secret?
    let isPairing: Bool
    /// nil: every device that knows the code is accepted.
    private let trusted: Set<String>?
    /// The fingerprint of the other device, after its certificates were accepted.
    private(set) var device: String?
    /// Whether the certificates of the other device were refused.
    private(set) var hasRefused = false

    /// Whether an alert of either side says that the keys differ. With another code the Finished message of the client
    /// cannot be decrypted.
    private(set) var hasWrongCode = false

    private static let pairingSuites =
        "RSA-PSK-AES256-GCM-SHA384:RSA-PSK-AES128-GCM-SHA256:RSA-PSK-AES256-CBC-SHA"
    private static let pairedSuites = "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256"
    private static let groups =
        "brainpoolP512r1:brainpoolP384r1:brainpoolP256r1:secp384r1:prime256v1"
    private static let signatures = "RSA+SHA512:RSA+SHA384:RSA+SHA256"

    init(_ identity: RemoteIdentity, _ security: LinkSecurity, isServer: Bool) throws(CryptoError) {
        self.identity = identity
        switch security {
        case .pairing(let box, let device):
            guard let secret = box.take() else { throw .invalidKey }
            code = consume secret
            isPairing = true
            trusted = device.map { [$0] }
        case .paired(let fingerprints):
            code = nil
            isPairing = false
            trusted = fingerprints
        }
        let suites = isPairing ? Self.pairingSuites : Self.pairedSuites
        pointer = try check(SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method()))
        try check(tls_set_version(pointer, TLS1_2_VERSION))
        tls_keep_simple(pointer)
        try check(SSL_CTX_set_cipher_list(pointer, suites))
        try check(tls_set_groups(pointer, Self.groups))
        try check(tls_set_signatures(pointer, Self.signatures))
        try check(SSL_CTX_use_certificate(pointer, identity.certificate))
        try check(SSL_CTX_use_PrivateKey(pointer, identity.key))
        tls_set_owner(pointer, Unmanaged.passUnretained(self).toOpaque())
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        SSL_CTX_set_cert_verify_callback(
            pointer,
            { certificates, owner in
                guard let certificates, let owner else { return 0 }
                let context = Unmanaged<TLSContext>.fromOpaque(owner).takeUnretainedValue()
                if context.accepts(certificates) { return 1 }
                X509_STORE_CTX_set_error(certificates, X509_V_ERR_CERT_UNTRUSTED)
                return 0
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        guard isPairing else { return }
        SSL_CTX_set_info_callback(pointer) { connection, place, value in
            guard place & SSL_CB_ALERT != 0, let connection, let owner = tls_owner(connection) else { return }
            let alerts = [SSL_AD_BAD_RECORD_MAC, SSL_AD_DECRYPT_ERROR]
            guard alerts.contains(value & 0xFF) else { return }
            Unmanaged<TLSContext>.fromOpaque(owner).takeUnretainedValue().hasWrongCode = true
        }
        SSL_CTX_set_psk_client_callback(pointer) { connection, _, identity, identityCapacity, key, capacity in
            // The identity is empty.
            guard let identity, identityCapacity > 0 else { return 0 }
            identity[0] = 0
            return TLSContext.copyCode(connection, key, capacity)
        }
        SSL_CTX_set_psk_server_callback(pointer) { connection, _, key, capacity in
            TLSContext.copyCode(connection, key, capacity)
        }
    }

    deinit { SSL_CTX_free(pointer) }

    private func accepts(_ certificates: OpaquePointer) -> Bool {
        guard let found = PeerCertificate.device(certificates), trusted?.contains(found) ?? true else {
            hasRefused = true
            return false
        }
        device = found
        return true
    }

    private static func copyCode(
        _ connection: OpaquePointer?,
        _ target: UnsafeMutablePointer<UInt8>?,
        _ capacity: UInt32
    ) -> UInt32 {
        guard let connection, let target, let owner = tls_owner(connection) else { return 0 }
        let context = Unmanaged<TLSContext>.fromOpaque(owner).takeUnretainedValue()
        guard let code = context.code?.clone(), code.count <= Int(capacity) else { return 0 }
        return code.withBytes { bytes in
            for (index, byte) in bytes.enumerated() { target[index] = byte }
            return UInt32(bytes.count)
        }
    }
}
