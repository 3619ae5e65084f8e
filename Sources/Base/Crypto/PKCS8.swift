// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Secrets

extension ECPrivateKey {
    /// Reads an unencrypted PKCS#8 file (DER) with an EC key on one of the standardized curves, named or written out.
    /// RFC 5208, RFC 5915.
    /// - Throws: `.invalidKey` for anything else, left-over bytes included; `.unsupported` for another curve.
    package init(pkcs8: borrowing Secret) throws(CryptoError) {
        defer { ERR_clear_error() }  // the decoder leaves its failed tries behind
        let read = pkcs8.withBytes { bytes -> OpaquePointer? in
            var cursor = bytes.octets
            guard let info = d2i_PKCS8_PRIV_KEY_INFO(nil, &cursor, bytes.count) else { return nil }
            defer { PKCS8_PRIV_KEY_INFO_free(info) }  // clears the key octets
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

    /// The C function is EVP_PKEY_get_group_name. libcrypto also names a curve that the file writes out, after comparing
    /// all its numbers; parameters that are not those of a known curve stay without a name.
    private static func curve(of key: OpaquePointer) throws(CryptoError) -> Curve {
        var name = [CChar](repeating: 0, count: 80)
        var count = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1, let curve = Curve(nid: OBJ_txt2nid(name))
        else { throw .unsupported }
        return curve
    }
}
