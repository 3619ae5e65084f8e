// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL

/// ECDSA with plain signatures (TR-03111: r and s at full scalar length) and DER signatures (X.509).
package enum ECDSA {
    /// Verifies a plain signature of `message`; false for a malformed one.
    /// - Throws: only when libcrypto fails or does not have the curve.
    package static func verify(
        _ signature: [UInt8],
        of message: [UInt8],
        with key: ECPublicKey,
        digest: DigestAlgorithm
    ) throws(CryptoError) -> Bool {
        guard let der = try derSignature(fromPlain: signature, curve: key.curve) else { return false }
        return try verify(der: der, of: message, with: key, digest: digest)
    }

    /// Verifies a DER signature of `message`; false for a malformed one.
    package static func verify(
        der signature: [UInt8],
        of message: [UInt8],
        with key: ECPublicKey,
        digest: DigestAlgorithm
    ) throws(CryptoError) -> Bool {
        let handle = try EVPKey(key)
        let context = try check(EVP_MD_CTX_new())
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()  // libcrypto reports a wrong signature as an error
        }
        try check(EVP_DigestVerifyInit(context, nil, digest.method, nil, handle.pointer))
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// Makes a plain signature.
    package static func sign(
        _ message: [UInt8],
        with key: borrowing ECPrivateKey,
        digest: DigestAlgorithm
    ) throws(CryptoError) -> [UInt8] {
        try plainSignature(fromDER: try signDER(message, with: key, digest: digest), curve: key.group.curve)
    }

    /// Makes a DER signature.
    package static func signDER(
        _ message: [UInt8],
        with key: borrowing ECPrivateKey,
        digest: DigestAlgorithm
    ) throws(CryptoError) -> [UInt8] {
        let handle = try EVPKey(key)
        let context = try check(EVP_MD_CTX_new())
        defer { EVP_MD_CTX_free(context) }
        try check(EVP_DigestSignInit(context, nil, digest.method, nil, handle.pointer))
        var count = 0
        try check(EVP_DigestSign(context, nil, &count, message, message.count))
        var out = [UInt8](repeating: 0, count: count)
        try check(EVP_DigestSign(context, &out, &count, message, message.count))
        return Array(out.prefix(count))
    }

    /// Makes a plain signature of a digest that was computed before. The C function is EVP_PKEY_sign.
    package static func sign(digest: [UInt8], with key: borrowing ECPrivateKey) throws(CryptoError) -> [UInt8] {
        let handle = try EVPKey(key)
        let context = try check(EVP_PKEY_CTX_new_from_pkey(nil, handle.pointer, nil))
        defer { EVP_PKEY_CTX_free(context) }
        try check(EVP_PKEY_sign_init(context))
        var count = 0
        try check(EVP_PKEY_sign(context, nil, &count, digest, digest.count))
        var out = [UInt8](repeating: 0, count: count)
        try check(EVP_PKEY_sign(context, &out, &count, digest, digest.count))
        return try plainSignature(fromDER: Array(out.prefix(count)), curve: key.group.curve)
    }

    /// Converts r||s to an ECDSA-Sig-Value; nil when the length does not fit the curve. TR-03111 5.2.1, 5.2.2.
    package static func derSignature(fromPlain plain: [UInt8], curve: Curve) throws(CryptoError) -> [UInt8]? {
        let length = curve.scalarLength
        guard plain.count == 2 * length else { return nil }
        let value = try check(ECDSA_SIG_new())
        defer { ECDSA_SIG_free(value) }
        let r = try check(BN_bin2bn(Array(plain.prefix(length)), Int32(length), nil))
        guard let s = BN_bin2bn(Array(plain.suffix(length)), Int32(length), nil) else {
            BN_free(r)
            ERR_clear_error()
            throw .library
        }
        guard ECDSA_SIG_set0(value, r, s) == 1 else {  // after success the value owns both
            BN_free(r)
            BN_free(s)
            ERR_clear_error()
            throw .library
        }
        let count = i2d_ECDSA_SIG(value, nil)
        guard count > 0 else { throw .library }
        var out = [UInt8](repeating: 0, count: Int(count))
        let written = out.withUnsafeMutableBufferPointer { buffer in
            var cursor = buffer.baseAddress
            return i2d_ECDSA_SIG(value, &cursor)
        }
        guard written == count else { throw .library }
        return out
    }

    /// Converts an ECDSA-Sig-Value to r||s.
    /// - Throws: `.invalidLength` for another value, and for one that is too long for the curve.
    package static func plainSignature(fromDER der: [UInt8], curve: Curve) throws(CryptoError) -> [UInt8] {
        let value = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var cursor = buffer.baseAddress
            guard let value = d2i_ECDSA_SIG(nil, &cursor, buffer.count) else { return nil }
            guard let end = buffer.baseAddress?.advanced(by: buffer.count), cursor == end else {
                ECDSA_SIG_free(value)
                return nil
            }
            return value
        }
        guard let value else {
            ERR_clear_error()
            throw .invalidLength
        }
        defer { ECDSA_SIG_free(value) }
        let r = try check(ECDSA_SIG_get0_r(value))
        let s = try check(ECDSA_SIG_get0_s(value))
        return try octets(r, curve.scalarLength) + octets(s, curve.scalarLength)
    }
}

/// A key for the EVP functions of libcrypto.
private struct EVPKey: ~Copyable {
    let pointer: OpaquePointer

    init(_ key: ECPublicKey) throws(CryptoError) {
        pointer = try Self.make(curve: key.curve, publicKey: key.uncompressed, scalar: nil)
    }

    /// Takes a private key on a group with the generator of the curve; ECDSA has no other keys.
    init(_ key: borrowing ECPrivateKey) throws(CryptoError) {
        guard key.group === (try key.group.curve.group) else { throw .unsupported }
        let scalar = key.scalar.pointer
        pointer = try Self.make(curve: key.group.curve, publicKey: key.publicKey.uncompressed, scalar: scalar)
    }

    deinit { EVP_PKEY_free(pointer) }

    /// Makes the key. The builder wipes its copy of the scalar, because that is a secure BIGNUM. The C function is
    /// EVP_PKEY_fromdata.
    private static func make(
        curve: Curve,
        publicKey: [UInt8],
        scalar: OpaquePointer?
    ) throws(CryptoError) -> OpaquePointer {
        let context = try check(EVP_PKEY_CTX_new_from_name(nil, permanent("EC"), nil))
        defer { EVP_PKEY_CTX_free(context) }
        let builder = try check(OSSL_PARAM_BLD_new())
        defer { OSSL_PARAM_BLD_free(builder) }
        let name = try check(OBJ_nid2sn(curve.nid))
        try check(OSSL_PARAM_BLD_push_utf8_string(builder, permanent("group"), name, 0))
        if let scalar { try check(OSSL_PARAM_BLD_push_BN(builder, permanent("priv"), scalar)) }
        // The builder reads the point when it makes the parameters, so the point must live until then.
        let parameters = publicKey.withUnsafeBytes { point -> UnsafeMutablePointer<OSSL_PARAM>? in
            guard OSSL_PARAM_BLD_push_octet_string(builder, permanent("pub"), point.baseAddress, point.count) == 1
            else { return nil }
            return OSSL_PARAM_BLD_to_param(builder)
        }
        let list = try check(parameters)
        defer { OSSL_PARAM_free(list) }
        try check(EVP_PKEY_fromdata_init(context))
        var key: OpaquePointer?
        let selection = scalar == nil ? publicSelection : privateSelection
        try check(EVP_PKEY_fromdata(context, &key, selection, list), .invalidKey)
        return try check(key)
    }

    private static let publicSelection =
        OSSL_KEYMGMT_SELECT_DOMAIN_PARAMETERS | OSSL_KEYMGMT_SELECT_OTHER_PARAMETERS | OSSL_KEYMGMT_SELECT_PUBLIC_KEY
    private static let privateSelection = publicSelection | OSSL_KEYMGMT_SELECT_PRIVATE_KEY
}
