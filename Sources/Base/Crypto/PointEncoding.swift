// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Text

/// Encodes a number as a point of a curve whose prime is 3 modulo 4. ICAO 9303-11, appendix B.2 (affine coordinates).
enum PointEncoding {
    /// Returns the point of a big-endian number, which is reduced modulo the prime.
    /// - Throws: `.unsupported` for a prime that is 1 modulo 4; `.invalidPoint` for a number without a point.
    static func point(of number: borrowing Secret, on group: ECGroup) throws(CryptoError) -> ECPoint {
        let field = try Field(of: group)
        let wide = try BigNumber(number)
        let t = try field.reduced(wide)
        let one = try BigNumber(1)

        // alpha = -t^2; x2 = -b/a (1 + 1/(alpha + alpha^2)); x3 = alpha x2
        let square = try field.product(t, t)
        let alpha = try field.difference(BigNumber(), square)
        let sum = try field.sum(alpha, try field.product(alpha, alpha))
        let factor = try field.sum(one, try field.inverse(sum))
        let ratio = try field.product(field.b, try field.inverse(field.a))
        let x2 = try field.product(try field.difference(BigNumber(), ratio), factor)
        let x3 = try field.product(alpha, x2)

        // h2 = x2^3 + a x2 + b; u = t^3 h2; w = h2^(p - 1 - (p + 1)/4)
        let cube = try field.product(try field.product(x2, x2), x2)
        let h2 = try field.sum(try field.sum(cube, try field.product(field.a, x2)), field.b)
        let u = try field.product(try field.product(square, t), h2)
        let w = try field.power(h2, field.rootExponent)
        let test = try field.product(try field.product(w, w), h2)
        if BN_is_one(test.pointer) == 1 {
            return try field.point(x2, try field.product(w, h2), on: group)
        }
        return try field.point(x3, try field.product(w, u), on: group)
    }

    /// The prime field of a curve.
    private struct Field: ~Copyable {
        let prime: BigNumber
        let a: BigNumber
        let b: BigNumber
        /// p - 1 - (p + 1)/4.
        let rootExponent: BigNumber
        private let context: BigNumberContext

        init(of group: ECGroup) throws(CryptoError) {
            let prime = try BigNumber()
            let a = try BigNumber()
            let b = try BigNumber()
            try check(EC_GROUP_get_curve(group.pointer, prime.pointer, a.pointer, b.pointer, nil))
            guard BN_is_bit_set(prime.pointer, 0) == 1, BN_is_bit_set(prime.pointer, 1) == 1 else {
                throw .unsupported
            }
            let quarter = try prime.copy()
            try check(BN_add_word(quarter.pointer, 1))
            try check(BN_rshift(quarter.pointer, quarter.pointer, 2))
            let exponent = try prime.copy()
            try check(BN_sub_word(exponent.pointer, 1))
            try check(BN_sub(exponent.pointer, exponent.pointer, quarter.pointer))
            context = try BigNumberContext()
            self.prime = prime
            self.a = a
            self.b = b
            rootExponent = exponent
        }

        func reduced(_ x: borrowing BigNumber) throws(CryptoError) -> BigNumber {
            let result = try BigNumber()
            try check(BN_nnmod(result.pointer, x.pointer, prime.pointer, context.pointer))
            return result
        }

        func sum(_ x: borrowing BigNumber, _ y: borrowing BigNumber) throws(CryptoError) -> BigNumber {
            let result = try BigNumber()
            try check(BN_mod_add(result.pointer, x.pointer, y.pointer, prime.pointer, context.pointer))
            return result
        }

        func difference(_ x: borrowing BigNumber, _ y: borrowing BigNumber) throws(CryptoError) -> BigNumber {
            let result = try BigNumber()
            try check(BN_mod_sub(result.pointer, x.pointer, y.pointer, prime.pointer, context.pointer))
            return result
        }

        func product(_ x: borrowing BigNumber, _ y: borrowing BigNumber) throws(CryptoError) -> BigNumber {
            let result = try BigNumber()
            try check(BN_mod_mul(result.pointer, x.pointer, y.pointer, prime.pointer, context.pointer))
            return result
        }

        func power(_ x: borrowing BigNumber, _ exponent: borrowing BigNumber) throws(CryptoError) -> BigNumber {
            let result = try BigNumber()
            try check(
                BN_mod_exp_mont_consttime(
                    result.pointer,
                    x.pointer,
                    exponent.pointer,
                    prime.pointer,
                    context.pointer,
                    nil
                )
            )
            return result
        }

        /// - Throws: `.invalidPoint` for zero.
        func inverse(_ x: borrowing BigNumber) throws(CryptoError) -> BigNumber {
            let result = try BigNumber()
            _ = try check(BN_mod_inverse(result.pointer, x.pointer, prime.pointer, context.pointer), .invalidPoint)
            return result
        }

        func point(
            _ x: borrowing BigNumber,
            _ y: borrowing BigNumber,
            on group: ECGroup
        ) throws(CryptoError) -> ECPoint {
            let point = try ECPoint(on: group)
            // libcrypto checks that the point is on the curve.
            try check(
                EC_POINT_set_affine_coordinates(group.pointer, point.pointer, x.pointer, y.pointer, context.pointer),
                .invalidPoint
            )
            return point
        }
    }
}
