// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Secrets

/// AES-CMAC. SP 800-38B.
package enum CMAC {
    /// Bytes of the truncated tag that TR-03110 and ICAO 9303 use.
    package static let truncatedCount = 8

    /// The algorithm, fetched once; libcrypto counts references to it atomically.
    private struct Method: @unchecked Sendable {
        let pointer = EVP_MAC_fetch(nil, permanent("CMAC"), nil)
    }
    private static let method = Method()

    /// The full tag of 16 bytes. The key's length chooses the AES.
    package static func tag(_ message: [UInt8], key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        let cipher: StaticString
        switch AES(keyLength: key.count) {
        case .aes128: cipher = "AES-128-CBC"
        case .aes192: cipher = "AES-192-CBC"
        case .aes256: cipher = "AES-256-CBC"
        case nil: throw .invalidLength
        }
        let context = try check(EVP_MAC_CTX_new(try check(method.pointer)))
        defer { EVP_MAC_CTX_free(context) }  // cleanses the key
        let parameters = [
            OSSL_PARAM_construct_utf8_string(permanent("cipher"), UnsafeMutablePointer(mutating: permanent(cipher)), 0),
            OSSL_PARAM_construct_end(),
        ]
        let ready = key.withBytes { EVP_MAC_init(context, $0.octets, $0.count, parameters) }
        try check(ready)
        try check(EVP_MAC_update(context, message, message.count))
        var out = [UInt8](repeating: 0, count: AES.blockSize)
        var written = 0
        try check(EVP_MAC_final(context, &out, &written, out.count))
        guard written == out.count else { throw .library }
        return out
    }

    /// The first 8 bytes of the tag. TR-03110-3 A.2.4, ICAO 9303-11 9.8.7.
    package static func truncatedTag(_ message: [UInt8], key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        Array(try tag(message, key: key).prefix(truncatedCount))
    }
}
