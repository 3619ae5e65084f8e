// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// A number in memory that is wiped on release. libcrypto chooses algorithms in constant time for it.
package struct BigNumber: ~Copyable {
    /// A BIGNUM, in the secure heap if the process has one.
    package let pointer: OpaquePointer

    package init() throws(CryptoError) {
        pointer = try check(BN_secure_new())
        BN_set_flags(pointer, Int32(BN_FLG_CONSTTIME))
    }

    package init(_ value: UInt) throws(CryptoError) {
        let number = try BigNumber()
        try check(BN_set_word(number.pointer, value))
        self = number
    }

    /// Reads a big-endian number.
    package init(_ bytes: UnsafeRawBufferPointer) throws(CryptoError) {
        guard let count = Int32(exactly: bytes.count) else { throw .invalidLength }
        let number = try BigNumber()
        _ = try check(BN_bin2bn(bytes.octets, count, number.pointer))
        self = number
    }

    package init(_ bytes: [UInt8]) throws(CryptoError) {
        let number = try BigNumber()
        _ = try check(BN_bin2bn(bytes, Int32(bytes.count), number.pointer))
        self = number
    }

    package init(_ secret: borrowing Secret) throws(CryptoError) {
        self = try secret.withBytes { bytes throws(CryptoError) in try BigNumber(bytes) }
    }

    package init(hexadecimal: String) throws(CryptoError) {
        let number = try BigNumber()
        var target: OpaquePointer? = number.pointer
        guard BN_hex2bn(&target, hexadecimal) > 0 else { throw .library }
        self = number
    }

    deinit { BN_clear_free(pointer) }

    package borrowing func copy() throws(CryptoError) -> BigNumber {
        let number = try BigNumber()
        _ = try check(BN_copy(number.pointer, pointer))
        return number
    }

    package var isZero: Bool { BN_is_zero(pointer) != 0 }

    /// Whether the number is in 1 ..< order, both BIGNUM.
    package func isScalar(below order: OpaquePointer?) -> Bool {
        !isZero && BN_is_negative(pointer) == 0 && BN_cmp(pointer, order) < 0
    }

    /// Draws a number in 1 ..< order. The C function is BN_priv_rand_range.
    package static func random(below order: OpaquePointer?) throws(CryptoError) -> BigNumber {
        let number = try BigNumber()
        repeat { try check(BN_priv_rand_range(number.pointer, order)) } while number.isZero
        return number
    }
}

/// The scratch space of a calculation, in memory that is wiped on release. The C type is BN_CTX.
package struct BigNumberContext: ~Copyable {
    package let pointer: OpaquePointer

    package init() throws(CryptoError) { pointer = try check(BN_CTX_secure_new()) }

    deinit { BN_CTX_free(pointer) }
}
