// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// AES-CMAC. SP 800-38B.
package enum CMAC {
    /// The length of the truncated tag of TR-03110 and ICAO 9303 in bytes.
    package static let truncatedCount = 8

    /// A context for each AES, which is copied for each tag. Fetching the algorithms takes longer than computing a tag.
    private struct Templates: @unchecked Sendable {
        // Unchecked: the contexts are only copied.
        let aes128 = Self.make("AES-128-CBC", .aes128)
        let aes192 = Self.make("AES-192-CBC", .aes192)
        let aes256 = Self.make("AES-256-CBC", .aes256)

        /// Makes a context with a key of zeros, since a context without a key cannot be copied.
        private static func make(_ name: StaticString, _ cipher: AES) -> OpaquePointer? {
            guard let method = EVP_MAC_fetch(nil, permanent("CMAC"), nil) else { return nil }
            defer { EVP_MAC_free(method) }
            let context = EVP_MAC_CTX_new(method)
            let parameters = [
                OSSL_PARAM_construct_utf8_string(
                    permanent("cipher"),
                    UnsafeMutablePointer(mutating: permanent(name)),
                    0
                ),
                OSSL_PARAM_construct_end(),
            ]
            let zeros = [UInt8](repeating: 0, count: cipher.keyLength)
            guard EVP_MAC_init(context, zeros, zeros.count, parameters) == 1 else {
                EVP_MAC_CTX_free(context)
                return nil
            }
            return context
        }
    }
    private static let templates = Templates()

    /// Computes the full tag of 16 bytes. The length of the key selects the AES.
    package static func tag(_ message: [UInt8], key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        let template: OpaquePointer?
        switch AES(keyLength: key.count) {
        case .aes128: template = templates.aes128
        case .aes192: template = templates.aes192
        case .aes256: template = templates.aes256
        case nil: throw .invalidLength
        }
        let context = try check(EVP_MAC_CTX_dup(try check(template, .unsupported)))
        defer { EVP_MAC_CTX_free(context) }  // this also wipes the key
        let ready = key.withBytes { EVP_MAC_init(context, $0.octets, $0.count, nil) }
        try check(ready)
        try check(EVP_MAC_update(context, message, message.count))
        var out = [UInt8](repeating: 0, count: AES.blockSize)
        var written = 0
        try check(EVP_MAC_final(context, &out, &written, out.count))
        guard written == out.count else { throw .library }
        return out
    }

    /// Computes the tag and returns its first 8 bytes. TR-03110-3 A.2.4, ICAO 9303-11 9.8.7.
    package static func truncatedTag(_ message: [UInt8], key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        Array(try tag(message, key: key).prefix(truncatedCount))
    }
}
