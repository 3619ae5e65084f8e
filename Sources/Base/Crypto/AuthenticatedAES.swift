// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// Authenticated encryption with AES. SP 800-38C (CCM), SP 800-38D (GCM).
package enum AuthenticatedAES: Sendable, Equatable {
    /// A tag of 4 to 16 bytes; a nonce of 7 to 13 bytes.
    case ccm(tagCount: Int)
    /// A tag of 16 bytes; a nonce of 12 bytes.
    case gcm

    /// The length of the tag in bytes.
    package var tagCount: Int {
        switch self {
        case .ccm(let count): count
        case .gcm: 16
        }
    }

    /// Encrypts at least one byte and returns the ciphertext followed by its tag.
    ///
    /// The length of the key selects AES-128 or AES-256. The caller must not use a nonce twice with a key.
    package func seal(
        _ plain: borrowing Secret,
        key: borrowing Secret,
        nonce: [UInt8],
        authenticating header: [UInt8] = []
    ) throws(CryptoError) -> [UInt8] {
        let count = plain.count
        let context = try prepare(encrypts: true, key: key, nonce: nonce, tag: nil, header: header, count: count)
        defer { EVP_CIPHER_CTX_free(context) }
        var out = [UInt8](repeating: 0, count: count)
        var written: Int32 = 0
        let result = plain.withBytes { EVP_CipherUpdate(context, &out, &written, $0.octets, Int32($0.count)) }
        try check(result)
        guard Int(written) == count else { throw .library }
        var rest = [UInt8](repeating: 0, count: AES.blockSize)
        try check(EVP_CipherFinal_ex(context, &rest, &written))
        var tag = [UInt8](repeating: 0, count: tagCount)
        try check(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagCount), &tag))
        return out + tag
    }

    /// Checks the tag and decrypts.
    ///
    /// The result is nil if the tag is wrong, or if there is no byte before the tag.
    package func open(
        _ sealed: [UInt8],
        key: borrowing Secret,
        nonce: [UInt8],
        authenticating header: [UInt8] = []
    ) throws(CryptoError) -> Secret? {
        guard sealed.count > tagCount else { return nil }
        let count = sealed.count - tagCount
        let tag = Array(sealed[count...])
        let context = try prepare(encrypts: false, key: key, nonce: nonce, tag: tag, header: header, count: count)
        defer { EVP_CIPHER_CTX_free(context) }
        var isRight = false
        let plain = Secret(count: count) { out in
            var written: Int32 = 0
            guard EVP_CipherUpdate(context, out.octets, &written, sealed, Int32(count)) == 1 else { return }
            // CCM checks the tag in the call above, GCM in this call.
            if self == .gcm {
                var rest = [UInt8](repeating: 0, count: AES.blockSize)
                guard EVP_CipherFinal_ex(context, &rest, &written) == 1 else { return }
            }
            isRight = true
        }
        guard isRight else {
            ERR_clear_error()
            return nil
        }
        return plain
    }

    private func method(_ keyCount: Int) -> OpaquePointer? {
        switch (self, keyCount) {
        case (.ccm, 16): EVP_aes_128_ccm()
        case (.ccm, 32): EVP_aes_256_ccm()
        case (.gcm, 16): EVP_aes_128_gcm()
        case (.gcm, 32): EVP_aes_256_gcm()
        default: nil
        }
    }

    /// Makes a context with key, nonce, tag and authenticated data; the caller frees it, which wipes the key.
    private func prepare(
        encrypts: Bool,
        key: borrowing Secret,
        nonce: [UInt8],
        tag: [UInt8]?,
        header: [UInt8],
        count: Int
    ) throws(CryptoError) -> OpaquePointer {
        guard let method = method(key.count), (4...16).contains(tagCount), let length = Int32(exactly: count),
            let headerLength = Int32(exactly: header.count), length > 0
        else { throw .invalidLength }
        let context = try check(EVP_CIPHER_CTX_new())
        var isReady = false
        defer { if !isReady { EVP_CIPHER_CTX_free(context) } }
        try check(EVP_CipherInit_ex(context, method, nil, nil, nil, encrypts ? 1 : 0))
        try check(
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(nonce.count), nil),
            .invalidLength
        )
        if var tag {
            try check(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag))
        } else if self != .gcm {
            try check(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagCount), nil), .invalidLength)
        }
        let keyed = key.withBytes { EVP_CipherInit_ex(context, nil, nil, $0.octets, nonce, encrypts ? 1 : 0) }
        try check(keyed)
        var written: Int32 = 0
        // CCM needs the length of the text before the authenticated data.
        if self != .gcm { try check(EVP_CipherUpdate(context, nil, &written, nil, length)) }
        if headerLength > 0 { try check(EVP_CipherUpdate(context, nil, &written, header, headerLength)) }
        isReady = true
        return context
    }
}
