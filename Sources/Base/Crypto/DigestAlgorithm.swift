// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// The hash functions of TR-03110 and TR-03116. FIPS 180-4.
package enum DigestAlgorithm: Sendable, Hashable, CaseIterable {
    case sha1
    case sha224
    case sha256
    case sha384
    case sha512

    /// The length of a hash in bytes.
    package var count: Int {
        switch self {
        case .sha1: 20
        case .sha224: 28
        case .sha256: 32
        case .sha384: 48
        case .sha512: 64
        }
    }

    /// The EVP_MD of the algorithm, which is never freed.
    var method: OpaquePointer? {
        switch self {
        case .sha1: EVP_sha1()
        case .sha224: EVP_sha224()
        case .sha256: EVP_sha256()
        case .sha384: EVP_sha384()
        case .sha512: EVP_sha512()
        }
    }

    /// Hashes public bytes.
    package func hash(_ bytes: [UInt8]) throws(CryptoError) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: count)
        try check(EVP_Digest(bytes, bytes.count, &out, nil, method, nil))
        return out
    }

    /// Hashes a secret followed by a suffix. The hash is a secret.
    package func hash(_ secret: borrowing Secret, suffix: [UInt8] = []) throws(CryptoError) -> Secret {
        let context = try check(EVP_MD_CTX_new())
        defer { EVP_MD_CTX_free(context) }  // this also wipes its state
        try check(EVP_DigestInit_ex(context, method, nil))
        let result = secret.withBytes { EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
        try check(result)
        try check(EVP_DigestUpdate(context, suffix, suffix.count))
        return try Secret(count: count) { out throws(CryptoError) in
            try check(EVP_DigestFinal_ex(context, out.octets, nil))
        }
    }
}

/// RIPEMD-160, for the checksums of Antelope's keys only. ISO/IEC 10118-3.
package enum RIPEMD160 {
    package static func hash(_ bytes: [UInt8]) throws(CryptoError) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: 20)
        try check(EVP_Digest(bytes, bytes.count, &out, nil, EVP_ripemd160(), nil))
        return out
    }
}
