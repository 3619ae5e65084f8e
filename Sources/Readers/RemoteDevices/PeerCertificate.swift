// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import CTLS
import Crypto
import ReadersRemote
import Text

/// The certificates of the other side.
package enum PeerCertificate {
    /// The least sizes of keys in bits, which are those of AusweisApp.
    private static let leastRSA: Int32 = 2000
    private static let leastEC: Int32 = 250
    private static let maximumChain: Int32 = 4

    /// Returns the fingerprint of the device: that of the first self-signed certificate of its chain.
    ///
    /// The leaf may be another one, which that certificate has signed. The result is nil if a signature, a date or the
    /// size of a key is wrong, or if there is no self-signed certificate.
    package static func device(_ context: OpaquePointer) -> String? {
        let count = tls_chain_count(context)
        guard (1...maximumChain).contains(count) else { return nil }
        for index in 0..<count {
            guard let certificate = tls_chain_certificate(context, index), hasStrongKey(certificate),
                X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0,
                X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0
            else { return nil }
            if X509_self_signed(certificate, 1) == 1 {
                return RemoteIdentity.encode(certificate).flatMap { try? RemoteIdentity.fingerprint(of: $0) }
            }
            guard let issuer = tls_chain_certificate(context, index + 1),
                X509_verify(certificate, X509_get0_pubkey(issuer)) == 1
            else { return nil }
        }
        return nil
    }

    private static func hasStrongKey(_ certificate: OpaquePointer) -> Bool {
        guard let key = X509_get0_pubkey(certificate) else { return false }
        return switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA: EVP_PKEY_get_bits(key) >= leastRSA
        case EVP_PKEY_EC: EVP_PKEY_get_bits(key) >= leastEC
        default: false
        }
    }
}
