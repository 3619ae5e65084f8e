// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// A public key of RSA, for signatures with PKCS#1 v1.5 and PSS. RFC 8017, 8.1 and 8.2.
package struct RSAPublicKey: Sendable, Equatable {
    /// Big-endian, without leading zeros: 2048 to 4096 bits, or as the maker of the key allows.
    package let modulus: [UInt8]
    /// Big-endian, without leading zeros: an odd number of at most 32 bits, at least 3.
    package let exponent: [UInt8]

    /// Takes big-endian numbers; leading zeros are dropped.
    /// - Throws: `CryptoError.invalidKey` for numbers outside of the limits.
    package init(
        modulus: [UInt8],
        exponent: [UInt8],
        bits allowed: ClosedRange<Int> = 2048...4096
    ) throws(CryptoError) {
        self.modulus = Array(modulus.drop { $0 == 0 })
        self.exponent = Array(exponent.drop { $0 == 0 })
        let bits = self.modulus.count * 8 - (self.modulus.first?.leadingZeroBitCount ?? 0)
        guard allowed.contains(bits), (self.modulus.last ?? 0) & 1 == 1, (1...4).contains(self.exponent.count),
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

    /// The digests and the length of the salt of a signature with PSS. RFC 8017, A.2.3.
    package struct PSSParameters: Sendable, Equatable {
        package var digest: DigestAlgorithm
        /// The digest of the mask generation function 1.
        package var maskDigest: DigestAlgorithm
        /// In bytes.
        package var saltLength: Int

        package init(digest: DigestAlgorithm, maskDigest: DigestAlgorithm, saltLength: Int) {
            self.digest = digest
            self.maskDigest = maskDigest
            self.saltLength = saltLength
        }
    }

    /// Verifies a signature with PSS; false for a wrong or malformed one.
    /// - Throws: only when libcrypto fails.
    package func verify(
        _ signature: [UInt8],
        of message: [UInt8],
        pss parameters: PSSParameters
    ) throws(CryptoError) -> Bool {
        guard let saltLength = Int32(exactly: parameters.saltLength), (0...512).contains(saltLength) else {
            return false
        }
        let key = try handle()
        defer { EVP_PKEY_free(key) }
        let context = try check(EVP_MD_CTX_new())
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        var keyContext: OpaquePointer?
        try check(EVP_DigestVerifyInit(context, &keyContext, parameters.digest.method, nil, key))
        try check(EVP_PKEY_CTX_set_rsa_padding(keyContext, RSA_PKCS1_PSS_PADDING))
        try check(EVP_PKEY_CTX_set_rsa_mgf1_md(keyContext, parameters.maskDigest.method))
        try check(EVP_PKEY_CTX_set_rsa_pss_saltlen(keyContext, saltLength))
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// Returns signature^exponent mod modulus at the length of the modulus; nil for a signature that is no number below
    /// the modulus. Its form is the caller's to check. ISO/IEC 9796-2.
    package func recover(_ signature: [UInt8]) throws(CryptoError) -> [UInt8]? {
        let number = try BigNumber(signature)
        let n = try BigNumber(modulus)
        guard BN_cmp(number.pointer, n.pointer) < 0 else { return nil }
        let e = try BigNumber(exponent)
        let result = try BigNumber()
        let context = try BigNumberContext()
        try check(BN_mod_exp(result.pointer, number.pointer, e.pointer, n.pointer, context.pointer))
        return try octets(result.pointer, modulus.count)
    }

    /// Returns modulus - number at the length of the modulus: the other root of some signatures. ISO/IEC 9796-2 B.6.
    package func complement(_ number: [UInt8]) throws(CryptoError) -> [UInt8] {
        let n = try BigNumber(modulus)
        let value = try BigNumber(number)
        let result = try BigNumber()
        try check(BN_sub(result.pointer, n.pointer, value.pointer))
        return try octets(result.pointer, modulus.count)
    }

    /// Makes a key of libcrypto, which the caller frees. The C function is EVP_PKEY_fromdata.
    private func handle() throws(CryptoError) -> OpaquePointer {
        let n = try BigNumber(Secret(modulus))
        let e = try BigNumber(Secret(exponent))
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

/// The private numbers of an RSA key, for chips in software. The exponent is wiped when the value is freed.
package struct RSAPrivateNumbers: ~Copyable, Sendable {
    package let modulus: [UInt8]
    private let exponent: Secret

    /// Takes big-endian numbers.
    package init(modulus: [UInt8], exponent: consuming Secret) {
        self.modulus = Array(modulus.drop { $0 == 0 })
        self.exponent = exponent
    }

    /// The length of the modulus in bytes.
    package var length: Int { modulus.count }

    /// Returns message^exponent mod modulus at the length of the modulus. The message has its padding already.
    package func sign(_ message: [UInt8]) throws(CryptoError) -> [UInt8] {
        let number = try BigNumber(message)
        let n = try BigNumber(modulus)
        let d = try BigNumber(exponent)
        let result = try BigNumber()
        let context = try BigNumberContext()
        try check(
            BN_mod_exp_mont_consttime(result.pointer, number.pointer, d.pointer, n.pointer, context.pointer, nil)
        )
        return try octets(result.pointer, modulus.count)
    }
}
