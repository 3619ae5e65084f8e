// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Crypto
package import Secrets

/// A secret number modulo the order of the group, in memory that is wiped on release.
package struct Scalar: ~Copyable {
    /// BIGNUM.
    let pointer: OpaquePointer

    /// The length of an encoding in bytes.
    package static let encodedCount = 32

    private init() throws(CryptoError) {
        pointer = try check(BN_secure_new(), .library)
        BN_set_flags(pointer, Int32(BN_FLG_CONSTTIME))
    }

    /// A small number, such as a PIN.
    package init(_ number: UInt32) throws(CryptoError) {
        let scalar = try Scalar()
        try check(BN_set_word(scalar.pointer, UInt(number)), .library)
        self = scalar
    }

    /// Reads 32 bytes, big-endian.
    /// - Throws: `.invalidLength`, or `.invalidKey` for zero and for a number that is not below the order.
    package init(_ encoding: borrowing Secret) throws(CryptoError) {
        guard encoding.count == Self.encodedCount else { throw .invalidLength }
        let scalar = try Scalar()
        let result = encoding.withBytes { bytes in
            BN_bin2bn(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(bytes.count), scalar.pointer)
        }
        _ = try check(result, .library)
        guard BN_is_zero(scalar.pointer) == 0, BN_cmp(scalar.pointer, try Group.order) < 0 else { throw .invalidKey }
        self = scalar
    }

    /// Reduces a digest of 32 bytes modulo the order.
    /// - Throws: `.invalidKey` if the result is zero.
    package init(reducing digest: [UInt8]) throws(CryptoError) {
        guard digest.count == Self.encodedCount else { throw .invalidLength }
        let scalar = try Scalar()
        let context = try check(BN_CTX_new(), .library)
        defer { BN_CTX_free(context) }
        _ = try check(BN_bin2bn(digest, Int32(digest.count), scalar.pointer), .library)
        try check(BN_nnmod(scalar.pointer, scalar.pointer, try Group.order, context), .library)
        guard BN_is_zero(scalar.pointer) == 0 else { throw .invalidKey }
        self = scalar
    }

    deinit { BN_clear_free(pointer) }

    /// Draws a number in 1 ..< order. The C function is BN_priv_rand_range.
    package static func random() throws(CryptoError) -> Scalar {
        let scalar = try Scalar()
        repeat {
            try check(BN_priv_rand_range(scalar.pointer, try Group.order), .library)
        } while BN_is_zero(scalar.pointer) != 0
        return scalar
    }

    /// Returns the sum modulo the order.
    /// - Throws: `.invalidKey` if the sum is zero.
    package borrowing func adding(_ other: borrowing Scalar) throws(CryptoError) -> Scalar {
        let sum = try Scalar()
        // Both are below the order, so this function of libcrypto needs no division, which would not be constant-time.
        try check(BN_mod_add_quick(sum.pointer, pointer, other.pointer, try Group.order), .library)
        guard BN_is_zero(sum.pointer) == 0 else { throw .invalidKey }
        return sum
    }

    /// Returns the inverse modulo the order.
    package borrowing func inverted() throws(CryptoError) -> Scalar {
        let inverse = try Scalar()
        let context = try check(BN_CTX_secure_new(), .library)
        defer { BN_CTX_free(context) }
        // The flag BN_FLG_CONSTTIME of this number chooses the algorithm without branches.
        _ = try check(BN_mod_inverse(inverse.pointer, pointer, try Group.order, context), .library)
        return inverse
    }

    /// Returns 32 bytes, big-endian.
    package borrowing func encoded() throws(CryptoError) -> Secret {
        try Secret(count: Self.encodedCount) { bytes throws(CryptoError) in
            let octets = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            guard BN_bn2binpad(pointer, octets, Int32(bytes.count)) == bytes.count else { throw .library }
        }
    }
}
