// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL

/// A private key for TLS.
final class TLSKey: @unchecked Sendable {
    enum Kind: Sendable { case rsa(bits: Int32), p256 }

    /// The EVP_PKEY; only read after the initializer.
    let pointer: OpaquePointer

    init(_ kind: Kind) throws(TLSError) {
        let name =
            switch kind {
            case .rsa: "RSA"
            case .p256: "EC"
            }
        let context = try need(EVP_PKEY_CTX_new_from_name(nil, name, nil), "no key type \(name)")
        defer { EVP_PKEY_CTX_free(context) }
        try need(EVP_PKEY_keygen_init(context), "key generation")
        switch kind {
        case .rsa(let bits): try need(EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits), "key size")
        case .p256: try need(EVP_PKEY_CTX_set_group_name(context, "P-256"), "key group")
        }
        var key: OpaquePointer?
        try need(EVP_PKEY_generate(context, &key), "key generation")
        pointer = try need(key, "key generation")
    }

    deinit { EVP_PKEY_free(pointer) }
}

/// An X.509 certificate with its key.
final class TLSCertificate: @unchecked Sendable {
    /// The X509; only read after the initializer.
    let pointer: OpaquePointer
    let key: TLSKey
    let der: [UInt8]

    /// The subject and the validity of a certificate.
    struct Subject {
        var hosts = ["localhost"]
        /// The first and the last moment in days from now.
        var validity = -2...700
        var isAuthority = false
    }

    /// Makes a certificate that is signed by `issuer` or by itself.
    init(_ subject: Subject, _ key: TLSKey, issuer: TLSCertificate? = nil) throws(TLSError) {
        let certificate = try need(X509_new(), "X509_new")
        do throws(TLSError) {
            try Self.fill(certificate, subject, key, issuer)
            (pointer, self.key, der) = (certificate, key, try Self.encode(certificate))
        } catch {
            X509_free(certificate)
            throw error
        }
    }

    deinit { X509_free(pointer) }

    private static func fill(
        _ certificate: OpaquePointer,
        _ subject: Subject,
        _ key: TLSKey,
        _ issuer: TLSCertificate?
    ) throws(TLSError) {
        try need(X509_set_version(certificate, 2), "version")
        let serial = UInt64.random(in: 1...UInt64(Int64.max))
        try need(ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial), "serial number")
        let day = 86_400
        _ = try need(X509_gmtime_adj(X509_getm_notBefore(certificate), subject.validity.lowerBound * day), "notBefore")
        _ = try need(X509_gmtime_adj(X509_getm_notAfter(certificate), subject.validity.upperBound * day), "notAfter")
        let name = X509_get_subject_name(certificate)
        let common = subject.hosts.first ?? ""
        try need(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, common, -1, -1, 0), "common name")
        let authority = issuer?.pointer ?? certificate
        try need(X509_set_issuer_name(certificate, X509_get_subject_name(authority)), "issuer")
        try need(X509_set_pubkey(certificate, key.pointer), "public key")
        try add(NID_basic_constraints, subject.isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE", to: certificate)
        if !subject.isAuthority {
            try add(NID_subject_alt_name, subject.hosts.map(alternativeName).joined(separator: ","), to: certificate)
        }
        guard X509_sign(certificate, (issuer?.key ?? key).pointer, EVP_sha256()) > 0 else {
            throw TLSError("signature")
        }
    }

    private static func alternativeName(_ host: String) -> String {
        let isAddress = host.contains(":") || host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) }
        return isAddress ? "IP:\(host)" : "DNS:\(host)"
    }

    private static func add(_ nid: Int32, _ value: String, to certificate: OpaquePointer) throws(TLSError) {
        let entry = try need(X509V3_EXT_conf_nid(nil, nil, nid, value), "extension \(value)")
        defer { X509_EXTENSION_free(entry) }
        try need(X509_add_ext(certificate, entry, -1), "extension \(value)")
    }

    private static func encode(_ certificate: OpaquePointer) throws(TLSError) -> [UInt8] {
        var buffer: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(certificate, &buffer)
        guard count > 0, let buffer else { throw TLSError("encoding of a certificate") }
        defer { CRYPTO_free(buffer, "", 0) }
        return Array(UnsafeBufferPointer(start: buffer, count: Int(count)))
    }
}
