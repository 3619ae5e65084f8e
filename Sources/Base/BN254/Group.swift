// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Crypto

/// The first group of the pairing-friendly curve BN254CX: y² = x³ + 2 over a field of 254 bits, of prime order.
///
/// M-Pin clients compute in this group only. The curve gives about 100 bits of security, not 128.
struct Group: @unchecked Sendable {
    // Sendable: libcrypto only reads a finished EC_GROUP.
    /// EC_GROUP.
    let pointer: OpaquePointer

    static let fieldCount = 32

    private static let shared = Result<Group, CryptoError> { () throws(CryptoError) in
        let field = try check(BN_new(), .library)
        let order = try check(BN_new(), .library)
        let one = try check(BN_new(), .library)
        let y = try check(BN_new(), .library)
        let zero = try check(BN_new(), .library)
        let b = try check(BN_new(), .library)
        defer { for number in [field, order, one, y, zero, b] { BN_free(number) } }
        try read("2400000008702a0db0bddf647a6366d3243fd6ee18093ee1be6623ef5c1b55b3", field)
        try read("2400000008702a0db0bddf647a6366d2c43fd6ee0cc906cebe11c0a636eb1f6d", order)
        try check(BN_set_word(zero, 0), .library)
        try check(BN_set_word(one, 1), .library)
        try check(BN_set_word(b, 2), .library)
        let group = try check(EC_GROUP_new_curve_GFp(field, zero, b, nil), .unsupported)
        // The generator is (p - 1, 1).
        let generator = try check(EC_POINT_new(group), .library)
        defer { EC_POINT_free(generator) }
        try check(BN_sub(y, field, one), .library)
        try check(EC_POINT_set_affine_coordinates(group, generator, y, one, nil), .unsupported)
        // With order and cofactor libcrypto multiplies in constant time.
        try check(EC_GROUP_set_generator(group, generator, order, one), .unsupported)
        return Group(pointer: group)
    }

    /// The EC_GROUP.
    static var pointer: OpaquePointer {
        get throws(CryptoError) { try shared.get().pointer }
    }

    /// The order of the group, BIGNUM.
    static var order: OpaquePointer {
        get throws(CryptoError) { try check(EC_GROUP_get0_order(try pointer), .library) }
    }

    private static func read(_ hexadecimal: String, _ number: OpaquePointer) throws(CryptoError) {
        var target: OpaquePointer? = number
        guard BN_hex2bn(&target, hexadecimal) > 0 else { throw .library }
    }
}

/// Throws `error` unless a call of libcrypto returned 1. The error queue of the thread is emptied.
func check(_ result: Int32, _ error: CryptoError) throws(CryptoError) {
    guard result == 1 else {
        ERR_clear_error()
        throw error
    }
}

/// Throws `error` when a constructor of libcrypto returned NULL.
func check<T>(_ pointer: T?, _ error: CryptoError) throws(CryptoError) -> T {
    guard let pointer else {
        ERR_clear_error()
        throw error
    }
    return pointer
}
