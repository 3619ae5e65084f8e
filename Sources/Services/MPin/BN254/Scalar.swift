// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Crypto
package import Text

/// A secret number modulo the order of the group, in memory that is wiped on release.
package struct Scalar: ~Copyable {
    private let number: BigNumber

    /// BIGNUM.
    var pointer: OpaquePointer { number.pointer }

    /// The length of an encoding in bytes.
    package static let encodedCount = 32

    private init(_ number: consuming BigNumber) { self.number = number }

    /// A small number, such as a PIN.
    package init(_ number: UInt32) throws(CryptoError) { self.init(try BigNumber(UInt(number))) }

    /// Reads 32 bytes, big-endian.
    /// - Throws: `.invalidLength`, or `.invalidKey` for zero and for a number that is not below the order.
    package init(_ encoding: borrowing Secret) throws(CryptoError) {
        guard encoding.count == Self.encodedCount else { throw .invalidLength }
        let number = try BigNumber(encoding)
        guard number.isScalar(below: try Group.order) else { throw .invalidKey }
        self.init(number)
    }

    /// Reduces a digest of 32 bytes modulo the order.
    /// - Throws: `.invalidKey` if the result is zero.
    package init(reducing digest: [UInt8]) throws(CryptoError) {
        guard digest.count == Self.encodedCount else { throw .invalidLength }
        let number = try BigNumber(digest)
        let context = try check(BN_CTX_new())
        defer { BN_CTX_free(context) }
        try check(BN_nnmod(number.pointer, number.pointer, try Group.order, context))
        guard !number.isZero else { throw .invalidKey }
        self.init(number)
    }

    /// Draws a number in 1 ..< order.
    package static func random() throws(CryptoError) -> Scalar { Scalar(try .random(below: Group.order)) }

    /// Returns the sum modulo the order.
    /// - Throws: `.invalidKey` if the sum is zero.
    package borrowing func adding(_ other: borrowing Scalar) throws(CryptoError) -> Scalar {
        let sum = try BigNumber()
        // Both are below the order, so this function of libcrypto needs no division, which would not be constant-time.
        try check(BN_mod_add_quick(sum.pointer, pointer, other.pointer, try Group.order))
        guard !sum.isZero else { throw .invalidKey }
        return Scalar(sum)
    }

    /// Returns the inverse modulo the order.
    package borrowing func inverted() throws(CryptoError) -> Scalar {
        let inverse = try BigNumber()
        let context = try check(BN_CTX_secure_new())
        defer { BN_CTX_free(context) }
        // The flag BN_FLG_CONSTTIME of this number chooses the algorithm without branches.
        _ = try check(BN_mod_inverse(inverse.pointer, pointer, try Group.order, context))
        return Scalar(inverse)
    }

    /// Returns 32 bytes, big-endian.
    package borrowing func encoded() throws(CryptoError) -> Secret {
        try Secret(count: Self.encodedCount) { bytes throws(CryptoError) in
            guard BN_bn2binpad(pointer, bytes.octets, Int32(bytes.count)) == bytes.count else { throw .library }
        }
    }
}
