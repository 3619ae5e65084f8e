// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

extension ECPrivateKey {
    /// Reads an unencrypted PKCS#8 key (DER) on a standardized curve, with a named curve or explicit parameters.
    /// RFC 5208, RFC 5915.
    /// - Throws: `.invalidKey` for other bytes, also after the key; `.unsupported` for another curve.
    package init(pkcs8: borrowing Secret) throws(CryptoError) {
        defer { ERR_clear_error() }  // the decoder leaves errors of the formats that it tried
        let read = pkcs8.withBytes { bytes -> OpaquePointer? in
            var cursor = bytes.octets
            guard let info = d2i_PKCS8_PRIV_KEY_INFO(nil, &cursor, bytes.count) else { return nil }
            defer { PKCS8_PRIV_KEY_INFO_free(info) }  // this also wipes the key
            guard let start = bytes.octets, cursor == start.advanced(by: bytes.count) else { return nil }
            return EVP_PKCS82PKEY(info)
        }
        guard let key = read else { throw .invalidKey }
        defer { EVP_PKEY_free(key) }
        guard EVP_PKEY_is_a(key, permanent("EC")) == 1 else { throw .invalidKey }
        let group = try Self.curve(of: key).group
        let scalar = try BigNumber()
        var number: OpaquePointer? = scalar.pointer
        try check(EVP_PKEY_get_bn_param(key, permanent("priv"), &number), .invalidKey)
        try self.init(scalar: scalar, on: group)
    }

    /// Finds the curve of a key. libcrypto also names a curve with explicit parameters, after comparing all of them. The C
    /// function is EVP_PKEY_get_group_name.
    private static func curve(of key: OpaquePointer) throws(CryptoError) -> Curve {
        var name = [CChar](repeating: 0, count: 80)
        var count = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1, let curve = Curve(nid: OBJ_txt2nid(name))
        else { throw .unsupported }
        return curve
    }
}
