// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Crypto

/// The first group of the pairing-friendly curve BN254CX: y² = x³ + 2 over a field of 254 bits, of prime order.
///
/// M-Pin clients compute in this group only. The curve has about 100 bits of security, not 128.
struct Group: @unchecked Sendable {
    // Sendable: libcrypto only reads a finished EC_GROUP.
    /// EC_GROUP.
    let pointer: OpaquePointer

    static let fieldCount = 32

    private static let shared = Result<Group, CryptoError> { () throws(CryptoError) in
        let field = try BigNumber(hexadecimal: "2400000008702a0db0bddf647a6366d3243fd6ee18093ee1be6623ef5c1b55b3")
        let order = try BigNumber(hexadecimal: "2400000008702a0db0bddf647a6366d2c43fd6ee0cc906cebe11c0a636eb1f6d")
        let zero = try BigNumber(0)
        let one = try BigNumber(1)
        let two = try BigNumber(2)
        let group = try check(EC_GROUP_new_curve_GFp(field.pointer, zero.pointer, two.pointer, nil), .unsupported)
        // The generator is (p - 1, 1).
        let generator = try check(EC_POINT_new(group))
        defer { EC_POINT_free(generator) }
        let x = try BigNumber()
        try check(BN_sub(x.pointer, field.pointer, one.pointer))
        try check(EC_POINT_set_affine_coordinates(group, generator, x.pointer, one.pointer, nil), .unsupported)
        // With order and cofactor libcrypto multiplies in constant time.
        try check(EC_GROUP_set_generator(group, generator, order.pointer, one.pointer), .unsupported)
        return Group(pointer: group)
    }

    /// The EC_GROUP.
    static var pointer: OpaquePointer {
        get throws(CryptoError) { try shared.get().pointer }
    }

    /// The order of the group, BIGNUM.
    static var order: OpaquePointer {
        get throws(CryptoError) { try check(EC_GROUP_get0_order(try pointer)) }
    }
}
