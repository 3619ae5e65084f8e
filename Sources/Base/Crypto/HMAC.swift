// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

extension DigestAlgorithm {
    /// Computes the HMAC of a message. FIPS 198-1.
    package func hmac(_ message: borrowing Secret, key: borrowing Secret) throws(CryptoError) -> Secret {
        guard let keyCount = Int32(exactly: key.count) else { throw .invalidLength }
        return try Secret(count: count) { out throws(CryptoError) in
            let result = key.withBytes { key in
                message.withBytes { HMAC(method, key.baseAddress, keyCount, $0.octets, $0.count, out.octets, nil) }
            }
            _ = try check(result)
        }
    }

    /// Derives a key of `count` bytes with HKDF. RFC 5869.
    package func hkdf(
        _ secret: borrowing Secret,
        salt: [UInt8],
        info: [UInt8],
        count wanted: Int
    ) throws(CryptoError) -> Secret {
        guard wanted > 0, wanted <= 255 * count else { throw .invalidLength }
        let extracted = try hmac(secret, key: Secret(salt))
        var out = Secret([])
        var block = Secret([])
        var number: UInt8 = 0
        while out.count < wanted {
            number += 1
            block = try hmac(block.appending(info + [number]), key: extracted)
            out = out.appending(block)
        }
        guard let key = out.part(0..<wanted) else { throw .invalidLength }
        return key
    }

    /// Derives a key of `count` bytes from a password with PBKDF2. RFC 8018 5.2.
    package func pbkdf2(
        _ password: borrowing Secret,
        salt: borrowing Secret,
        iterations: Int,
        count wanted: Int
    ) throws(CryptoError) -> Secret {
        guard let rounds = Int32(exactly: iterations), rounds > 0, let length = Int32(exactly: wanted),
            let passwordCount = Int32(exactly: password.count), let saltCount = Int32(exactly: salt.count)
        else { throw .invalidLength }
        return try Secret(count: wanted) { out throws(CryptoError) in
            let result = password.withBytes { password in
                salt.withBytes { salt in
                    PKCS5_PBKDF2_HMAC(
                        password.baseAddress?.assumingMemoryBound(to: CChar.self),
                        passwordCount,
                        salt.baseAddress?.assumingMemoryBound(to: UInt8.self),
                        saltCount,
                        rounds,
                        method,
                        length,
                        out.octets
                    )
                }
            }
            try check(result)
        }
    }
}
