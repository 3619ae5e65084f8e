// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Crypto
package import Text

/// A point of the group, in memory that is wiped on release.
package struct Point: ~Copyable {
    /// EC_POINT.
    private let pointer: OpaquePointer

    /// The length of an encoding in bytes: 04, x and y.
    package static let encodedCount = 1 + 2 * Group.fieldCount

    private init() throws(CryptoError) {
        pointer = try check(EC_POINT_new(try Group.pointer))
    }

    /// Reads an uncompressed point that is a secret.
    /// - Throws: `.invalidPoint` for another length, and for a point that is not on the curve.
    package init(_ encoding: borrowing Secret) throws(CryptoError) {
        self = try encoding.withBytes { bytes throws(CryptoError) in try Point(bytes) }
    }

    private init(_ bytes: UnsafeRawBufferPointer) throws(CryptoError) {
        guard bytes.first == 4, bytes.count == Self.encodedCount else { throw .invalidPoint }
        let point = try Point()
        try check(EC_POINT_oct2point(try Group.pointer, point.pointer, bytes.octets, bytes.count, nil), .invalidPoint)
        self = point
    }

    deinit { EC_POINT_clear_free(pointer) }

    /// Maps a public hash of 32 bytes to a point. The hash is the first candidate for x, which is incremented until a
    /// point has this x. The result is the point with the even y.
    package static func hash(_ digest: [UInt8]) throws(CryptoError) -> Point {
        guard digest.count == Group.fieldCount else { throw .invalidLength }
        let group = try Group.pointer
        let context = try check(BN_CTX_new())
        defer { BN_CTX_free(context) }
        let number = try BigNumber(digest)
        let x = number.pointer
        let field = try check(EC_GROUP_get0_field(group))
        try check(BN_nnmod(x, x, field, context))
        let point = try Point()
        // About half of all x are on the curve, so 512 misses in a row are practically impossible.
        for _ in 0..<512 {
            if EC_POINT_set_compressed_coordinates(group, point.pointer, x, 0, context) == 1 { return point }
            ERR_clear_error()
            try check(BN_add_word(x, 1))
            if BN_cmp(x, field) == 0 { try check(BN_set_word(x, 0)) }
        }
        throw .library
    }

    private borrowing func isInfinity() throws(CryptoError) -> Bool {
        EC_POINT_is_at_infinity(try Group.pointer, pointer) != 0
    }

    /// Returns 04, x and y.
    /// - Throws: `.invalidPoint` for the point at infinity, which has no encoding.
    package borrowing func encoded() throws(CryptoError) -> [UInt8] {
        try secret().withBytes { Array($0) }
    }

    /// Returns 04, x and y as a secret.
    /// - Throws: `.invalidPoint` as above.
    package borrowing func secret() throws(CryptoError) -> Secret {
        try Secret(count: Self.encodedCount) { bytes throws(CryptoError) in try encode(into: bytes) }
    }

    private borrowing func encode(into bytes: UnsafeMutableRawBufferPointer) throws(CryptoError) {
        guard !(try isInfinity()) else { throw .invalidPoint }
        let form = POINT_CONVERSION_UNCOMPRESSED
        guard EC_POINT_point2oct(try Group.pointer, pointer, form, bytes.octets, bytes.count, nil) == bytes.count else {
            ERR_clear_error()
            throw .invalidPoint
        }
    }

    package borrowing func adding(_ other: borrowing Point) throws(CryptoError) -> Point {
        let sum = try Point()
        try check(EC_POINT_add(try Group.pointer, sum.pointer, pointer, other.pointer, nil))
        return sum
    }

    package borrowing func negated() throws(CryptoError) -> Point {
        let group = try Group.pointer
        let result = try Point()
        try check(EC_POINT_copy(result.pointer, pointer))
        try check(EC_POINT_invert(group, result.pointer, nil))
        return result
    }

    /// Multiplies in constant time: one scalar and one point for each call of libcrypto.
    package borrowing func multiplied(by scalar: borrowing Scalar) throws(CryptoError) -> Point {
        let result = try Point()
        try check(EC_POINT_mul(try Group.pointer, result.pointer, nil, pointer, scalar.pointer, nil))
        return result
    }
}
