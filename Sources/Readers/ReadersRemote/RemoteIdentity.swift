// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Concurrency
package import Crypto
package import Text

/// The own RSA key and the self-signed certificate, the same for both halves of the protocol.
package final class RemoteIdentity: @unchecked Sendable {
    /// The EVP_PKEY and the X509; only read after the initializer.
    package let key: OpaquePointer
    package let certificate: OpaquePointer
    /// The certificate in DER.
    package let encodedCertificate: [UInt8]
    /// SHA-256 of the certificate: 64 lower-case digits.
    package let fingerprint: String

    private static let keyBits = 3072

    /// Makes a new key on a thread of its own, because that takes up to some seconds.
    package static func generate() async throws(Failure) -> RemoteIdentity {
        let made = OneShot<Result<RemoteIdentity, Failure>>()
        let isStarted = startThread("badged-remote") {
            do throws(Failure) {
                made.fill(.success(try cryptography(generateNow())))
            } catch {
                made.fill(.failure(error))
            }
        }
        guard isStarted else {
            throw Failure(.internalError, "cannot spawn a thread to make the key: the process limit is reached")
        }
        return try await Task { await made.value(whenCancelled: .failure(.crypto(.library))) }.value.get()
    }

    private static func generateNow() throws(CryptoError) -> RemoteIdentity {
        let context = try check(EVP_PKEY_CTX_new_from_name(nil, "RSA", nil))
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        try check(EVP_PKEY_keygen_init(context))
        try check(EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(keyBits)))
        try check(EVP_PKEY_generate(context, &key))
        let made = try check(key)
        do throws(CryptoError) {
            return try RemoteIdentity(made, try selfSigned(made))
        } catch {
            EVP_PKEY_free(made)
            throw error
        }
    }

    /// Reads a key as PKCS #8 and a certificate as DER.
    package convenience init(key: borrowing Secret, certificate: [UInt8]) throws(CryptoError) {
        let pointer = key.withBytes { bytes -> OpaquePointer? in
            var start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return d2i_AutoPrivateKey(nil, &start, bytes.count)
        }
        let made = try check(pointer)
        let read = certificate.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var start = bytes.baseAddress
            return d2i_X509(nil, &start, bytes.count)
        }
        guard let read, X509_check_private_key(read, made) == 1 else {
            ERR_clear_error()
            X509_free(read)
            EVP_PKEY_free(made)
            throw .invalidKey
        }
        do throws(CryptoError) {
            try self.init(made, read)
        } catch {
            X509_free(read)
            EVP_PKEY_free(made)
            throw error
        }
    }

    /// Takes both pointers, unless it throws.
    private init(_ key: OpaquePointer, _ certificate: OpaquePointer) throws(CryptoError) {
        let encoded = try check(Self.encode(certificate))
        fingerprint = try Self.fingerprint(of: encoded)
        self.key = key
        self.certificate = certificate
        encodedCertificate = encoded
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    /// The key as PKCS #8.
    package func encodedKey() throws(CryptoError) -> Secret {
        let info = try check(EVP_PKEY2PKCS8(key))
        defer { PKCS8_PRIV_KEY_INFO_free(info) }
        let count = i2d_PKCS8_PRIV_KEY_INFO(info, nil)
        guard count > 0 else { throw .library }
        return Secret(count: Int(count)) { target in
            var start = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
            _ = i2d_PKCS8_PRIV_KEY_INFO(info, &start)
        }
    }

    /// A certificate with the form of AusweisApp's: version 1, a common name and a number, valid for ever.
    private static func selfSigned(_ key: OpaquePointer) throws(CryptoError) -> OpaquePointer {
        let certificate = try check(X509_new())
        do throws(CryptoError) {
            let number = try Random.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            try check(X509_set_version(certificate, 0))
            try check(ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), 1))
            try check(ASN1_TIME_set_string(X509_getm_notBefore(certificate), "19700101000000Z"))
            try check(ASN1_TIME_set_string(X509_getm_notAfter(certificate), "99991231235959Z"))
            let name = X509_get_subject_name(certificate)
            for (entry, text) in [("CN", "badged"), ("serialNumber", String(number))] {
                try check(
                    X509_NAME_add_entry_by_txt(
                        name,
                        entry,
                        MBSTRING_UTF8,
                        Array(text.utf8),
                        Int32(text.utf8.count),
                        -1,
                        0
                    )
                )
            }
            try check(X509_set_issuer_name(certificate, name))
            try check(X509_set_pubkey(certificate, key))
            guard X509_sign(certificate, key, EVP_sha256()) > 0 else { throw CryptoError.library }
            return certificate
        } catch {
            X509_free(certificate)
            throw error
        }
    }

    /// Returns the DER of an X509; nil if libcrypto fails.
    package static func encode(_ certificate: OpaquePointer) -> [UInt8]? {
        let count = i2d_X509(certificate, nil)
        guard count > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(count))
        let written = bytes.withUnsafeMutableBufferPointer { buffer -> Int32 in
            var start = buffer.baseAddress
            return i2d_X509(certificate, &start)
        }
        return written == count ? bytes : nil
    }

    package static func fingerprint(of certificate: [UInt8]) throws(CryptoError) -> String {
        Hex.encode(try DigestAlgorithm.sha256.hash(certificate))
    }
}
