// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
import HTTP

/// Trusts certain authorities and no others. The certificate must be for the host; TLS 1.2 or newer.
final class AuthorityRules: TLSRules {
    /// Certificates in PEM.
    private let authorities: [UInt8]
    private var host = ""
    private(set) var fault: TLSFault?

    init(_ authorities: [UInt8]) { self.authorities = authorities }

    func reset(host: String) { (self.host, fault) = (host, nil) }

    func prepare(_ context: OpaquePointer) -> Bool {
        defer { ERR_clear_error() }
        guard tls_set_minimum_version(context, TLS1_2_VERSION) == 1 else { return false }
        guard addAuthorities(to: SSL_CTX_get_cert_store(context)) else {
            fault = .certificate("the file of the authorities has no certificates in PEM")
            return false
        }
        let parameters = SSL_CTX_get0_param(context)
        guard
            X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1
                || X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1
        else { return false }
        // As curl(1) does, a certificate in the file is trusted although it is not that of a root.
        X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, owner in
                guard let store, let owner else { return 0 }
                return Unmanaged<AuthorityRules>.fromOpaque(owner).takeUnretainedValue().verify(store)
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        return true
    }

    /// Adds the certificates to a store.
    /// - Returns: whether there is at least one.
    private func addAuthorities(to store: OpaquePointer?) -> Bool {
        authorities.withUnsafeBytes { bytes in
            guard let store, let source = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                return false
            }
            defer { BIO_free(source) }
            var count = 0
            while let certificate = PEM_read_bio_X509(source, nil, nil, nil) {
                if X509_STORE_add_cert(store, certificate) == 1 { count += 1 }
                X509_free(certificate)
            }
            return count > 0
        }
    }

    /// Checks chain, dates and name. The C function is X509_verify_cert.
    private func verify(_ store: OpaquePointer) -> Int32 {
        if X509_verify_cert(store) == 1 { return 1 }
        let code = X509_STORE_CTX_get_error(store)
        let words = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
        if fault == nil { fault = .certificate(words) }
        return 0
    }
}
