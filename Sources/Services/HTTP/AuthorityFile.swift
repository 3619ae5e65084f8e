// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL

/// Trusts the authorities in a file and no others. The certificate must be for the host; TLS 1.2 or newer.
package final class AuthorityFile: TLSRules {
    private let path: String
    private var host = ""
    package private(set) var fault: TLSFault?

    /// Takes the path of a file with certificates in PEM, which is read for each connection.
    package init(_ path: String) { self.path = path }

    package func reset(host: String) { (self.host, fault) = (host, nil) }

    package func prepare(_ context: OpaquePointer) -> Bool {
        defer { ERR_clear_error() }
        guard tls_set_minimum_version(context, TLS1_2_VERSION) == 1 else { return false }
        guard SSL_CTX_load_verify_file(context, path) == 1 else {
            fault = .certificate("the file \(path) has no certificates in PEM, or cannot be read")
            return false
        }
        let parameters = SSL_CTX_get0_param(context)
        guard
            X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1
                || X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1
        else { return false }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, owner in
                guard let store, let owner else { return 0 }
                return Unmanaged<AuthorityFile>.fromOpaque(owner).takeUnretainedValue().verify(store)
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        return true
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
