// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
package import Host
import Text

/// The files with certificates that a configuration names, read for connections: TLS 1.2 or later.
package final class TLSSettings {
    let context: OpaquePointer
    private let authorities: String
    private let certificate: String?

    private static let systemFolder = "/etc/ssl/certs"
    /// Bytes of a file.
    private static let longestFile = 10_000_000

    /// - Throws: `StartError` if a file cannot be read or used, or if the key is that of another certificate.
    package init(_ configuration: MQTTConfiguration) throws(StartError) {
        authorities = configuration.authorityFile ?? Self.systemFolder
        certificate = configuration.certificateFile
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            throw StartError("TLS cannot be used: \(Self.lastError)", hint: "free some memory")
        }
        self.context = context
        _ = tls_set_minimum_version(context, TLS1_2_VERSION)
        tls_keep_simple(context)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        // Without this function OpenSSL would ask for a passphrase at the terminal.
        SSL_CTX_set_default_passwd_cb(context) { _, _, _, _ in 0 }
        if let file = configuration.authorityFile {
            try Self.checkFile(file, "ca")
            guard SSL_CTX_load_verify_locations(context, file, nil) == 1 else {
                throw Self.refusal("\(file) has no certificates in PEM: \(Self.lastError)", "ca")
            }
        } else {
            _ = SSL_CTX_load_verify_locations(context, nil, Self.systemFolder)
        }
        guard let certificate, let key = configuration.keyFile else { return }
        try Self.checkFile(certificate, "certificate")
        guard SSL_CTX_use_certificate_chain_file(context, certificate) == 1 else {
            throw Self.refusal("\(certificate) has no certificate in PEM: \(Self.lastError)", "certificate")
        }
        let content = try Self.checkFile(key, "key")
        guard SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1,
            SSL_CTX_check_private_key(context) == 1
        else { throw Self.keyRefusal(key, content, certificate) }
        ERR_clear_error()
    }

    deinit { SSL_CTX_free(context) }

    private static func keyRefusal(_ key: String, _ content: [UInt8], _ certificate: String) -> StartError {
        switch ERR_GET_REASON(ERR_peek_last_error()) {
        case X509_R_KEY_VALUES_MISMATCH, X509_R_KEY_TYPE_MISMATCH:
            return refusal("\(key) is the key of another certificate than \(certificate)", "key")
        // Both forms of PEM say so.
        case _ where String(decoding: content, as: UTF8.self).includes("ENCRYPTED"):
            return refusal("the key in \(key) is encrypted with a passphrase", "key")
        default: return refusal("\(key) has no key in PEM: \(lastError)", "key")
        }
    }

    /// Looks at what is in the files, beyond what a connection needs.
    /// - Throws: `StartError` if the certificate of this host is not valid now, or not for clients.
    package func check() throws(StartError) {
        guard let certificate, let found = SSL_CTX_get0_certificate(context) else { return }
        if X509_cmp_current_time(X509_get0_notAfter(found)) < 0 {
            throw Self.refusal("\(certificate) has expired", "certificate")
        }
        if X509_cmp_current_time(X509_get0_notBefore(found)) > 0 {
            throw Self.refusal("\(certificate) is not valid yet: is the clock right?", "certificate")
        }
        guard X509_check_purpose(found, X509_PURPOSE_SSL_CLIENT, 0) == 1 else {
            throw Self.refusal("\(certificate) is not for clients (its extended key usage)", "certificate")
        }
    }

    @discardableResult
    private static func checkFile(_ path: String, _ key: String) throws(StartError) -> [UInt8] {
        switch PlainFile.read(path, limit: longestFile) {
        case .bytes(let bytes): return bytes
        case .missing: throw ConfiguredPath.refusal(path, nil, of: "[broker] \(key)")
        case .tooLong: throw refusal("\(path) is too long", key)
        case .failed(let reason):
            throw ConfiguredPath.refusal(path, reason, of: "[broker] \(key)", mayPass: PlainFile.mayPass())
        }
    }

    private static func refusal(_ text: String, _ key: String) -> StartError {
        ERR_clear_error()
        return .inConfiguration(text, hint: "correct [broker] \(key)")
    }

    /// The newest error of libcrypto in its words.
    private static var lastError: String {
        ERR_reason_error_string(ERR_peek_last_error()).map { String(cString: $0) } ?? "no reason is known"
    }

    // MARK: Words

    /// Why the certificate of the broker is refused; nil: it is accepted. `host` is the name in the address.
    func refusal(_ result: Int, host: String) -> String? {
        let name = "the certificate of the broker"
        switch Int32(result) {
        case X509_V_OK: return nil
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return "\(name) or of its authority has expired, or the clock of this host is wrong"
        case X509_V_ERR_CERT_NOT_YET_VALID: return "\(name) is not valid yet, or the clock of this host is wrong"
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            return "\(name) is for another name than \(host)"
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            return "\(name) was issued by no authority in \(authorities): correct [broker] ca"
        case X509_V_ERR_CERT_SIGNATURE_FAILURE: return "\(name) has a wrong signature"
        case X509_V_ERR_INVALID_PURPOSE: return "\(name) is not for servers (its extended key usage)"
        default:
            let words = X509_verify_cert_error_string(result).map { String(cString: $0) } ?? "error \(result)"
            return "\(name) is refused: \(words)"
        }
    }

    /// What the newest error of libssl means, and takes it from the queue.
    func lastFault() -> String {
        let error = ERR_peek_last_error()
        defer { ERR_clear_error() }
        let own =
            certificate == nil ? "this host has no certificate" : "the broker refuses the certificate of this host"
        switch ERR_GET_REASON(error) {
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_PACKET_LENGTH_TOO_LONG, SSL_R_HTTP_REQUEST:
            return "the broker does not speak TLS at this port: correct the port, or write mqtt://"
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, SSL_R_NO_PROTOCOLS_AVAILABLE:
            return "the broker does not speak TLS 1.2 or later"
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
            return "the broker asks for a certificate of this host: name [broker] certificate and key"
        case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED: return "\(own): it has expired"
        case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED: return "\(own): it is revoked"
        case SSL_R_TLSV1_ALERT_UNKNOWN_CA: return "\(own): the broker does not know its authority"
        case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
            SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, SSL_R_TLSV1_ALERT_ACCESS_DENIED:
            return own
        case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
            return certificate == nil
                ? "the broker refuses the TLS handshake; it may ask for a certificate: [broker] certificate and key"
                : "the broker refuses the TLS handshake: it shares no cipher or version, or refuses the certificate"
        default:
            let words = ERR_reason_error_string(error).map { String(cString: $0) }
            return "TLS has failed: \(words ?? "no reason is known")"
        }
    }
}
