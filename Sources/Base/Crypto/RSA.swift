// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Secrets

/// A public key of RSA, for signatures with PKCS#1 v1.5. RFC 8017, 8.2.
package struct RSAPublicKey: Sendable, Equatable {
    /// Big-endian, without leading zeros: 2048 to 4096 bits.
    package let modulus: [UInt8]
    /// Big-endian, without leading zeros: an odd number of at most 32 bits, at least 3.
    package let exponent: [UInt8]

    /// Takes big-endian numbers; leading zeros are dropped.
    /// - Throws: `CryptoError.invalidKey` for numbers outside of the limits.
    package init(modulus: [UInt8], exponent: [UInt8]) throws(CryptoError) {
        self.modulus = Array(modulus.drop { $0 == 0 })
        self.exponent = Array(exponent.drop { $0 == 0 })
        let bits = self.modulus.count * 8 - (self.modulus.first?.leadingZeroBitCount ?? 0)
        guard (2048...4096).contains(bits), (self.modulus.last ?? 0) & 1 == 1, (1...4).contains(self.exponent.count),
            (self.exponent.last ?? 0) & 1 == 1, self.exponent != [1]
        else { throw .invalidKey }
    }

    /// Verifies a signature, which is as long as the modulus; false for a wrong or malformed one.
    /// - Throws: only when libcrypto fails.
    package func verify(
        _ signature: [UInt8],
        of message: [UInt8],
        digest: DigestAlgorithm
    ) throws(CryptoError) -> Bool {
        let key = try handle()
        defer { EVP_PKEY_free(key) }
        let context = try check(EVP_MD_CTX_new())
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()  // libcrypto reports a wrong signature as an error
        }
        // PKCS#1 v1.5 is the default padding of libcrypto.
        try check(EVP_DigestVerifyInit(context, nil, digest.method, nil, key))
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// Makes a key of libcrypto, which the caller frees. The C function is EVP_PKEY_fromdata.
    private func handle() throws(CryptoError) -> OpaquePointer {
        let n = try Secret(modulus).withBytes { bytes throws(CryptoError) in try BigNumber(bytes) }
        let e = try Secret(exponent).withBytes { bytes throws(CryptoError) in try BigNumber(bytes) }
        let context = try check(EVP_PKEY_CTX_new_from_name(nil, permanent("RSA"), nil))
        defer { EVP_PKEY_CTX_free(context) }
        let builder = try check(OSSL_PARAM_BLD_new())
        defer { OSSL_PARAM_BLD_free(builder) }
        try check(OSSL_PARAM_BLD_push_BN(builder, permanent("n"), n.pointer))
        try check(OSSL_PARAM_BLD_push_BN(builder, permanent("e"), e.pointer))
        let list = try check(OSSL_PARAM_BLD_to_param(builder))
        defer { OSSL_PARAM_free(list) }
        try check(EVP_PKEY_fromdata_init(context))
        var key: OpaquePointer?
        let selection = OSSL_KEYMGMT_SELECT_ALL_PARAMETERS | OSSL_KEYMGMT_SELECT_PUBLIC_KEY
        try check(EVP_PKEY_fromdata(context, &key, selection, list), .invalidKey)
        return try check(key)
    }
}
