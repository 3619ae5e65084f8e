// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// Random numbers from the generators of libcrypto.
package enum Random {
    /// Draws public bytes, such as a challenge.
    package static func bytes(_ count: Int) throws(CryptoError) -> [UInt8] {
        guard let size = Int32(exactly: count), size >= 0 else { throw .invalidLength }
        var out = [UInt8](repeating: 0, count: count)
        try check(RAND_bytes(&out, size))
        return out
    }

    /// Draws secret bytes, such as a nonce before its encryption.
    package static func secret(_ count: Int) throws(CryptoError) -> Secret {
        guard let size = Int32(exactly: count), size >= 0 else { throw .invalidLength }
        return try Secret(count: count) { out throws(CryptoError) in
            try check(RAND_priv_bytes(out.octets, size))
        }
    }
}

/// Comparison in a time that does not depend on the content. The lengths are no secret.
package enum ConstantTime {
    package static func equal(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
    }

    package static func equal(_ a: borrowing Secret, _ b: borrowing Secret) -> Bool {
        guard a.count == b.count else { return false }
        return a.withBytes { left in
            CRYPTO_memcmp(left.baseAddress, address(b), left.count) == 0
        }
    }

    /// The address of the bytes; valid while the caller borrows `secret`.
    private static func address(_ secret: borrowing Secret) -> UnsafeRawPointer? {
        secret.withBytes { $0.baseAddress }
    }
}
