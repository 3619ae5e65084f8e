// SPDX-License-Identifier: GPL-3.0-or-later

/// A number of the field of BN254CX, modulo p, in Montgomery form. All operations take the same time for all numbers.
///
/// libcrypto has no public arithmetic in constant time for such a field; it has it for the first group only.
struct FieldElement: Sendable {
    private var limbs: InlineArray<4, UInt64>

    /// p, the least significant limb first.
    private static let modulus: InlineArray<4, UInt64> = [
        0xbe66_23ef_5c1b_55b3, 0x243f_d6ee_1809_3ee1, 0xb0bd_df64_7a63_66d3, 0x2400_0000_0870_2a0d,
    ]
    /// -1/p modulo 2⁶⁴, by Newton's iteration: each step doubles the number of right bits.
    private static let factor: UInt64 = {
        var inverse = modulus[0]
        for _ in 0..<5 { inverse = inverse &* (2 &- modulus[0] &* inverse) }
        return 0 &- inverse
    }()
    /// 2⁵¹² modulo p, as plain limbs: it brings numbers into Montgomery form.
    private static let square: FieldElement = {
        var number = FieldElement(limbs: [1, 0, 0, 0])
        for _ in 0..<512 { number = number + number }
        return number
    }()

    static let zero = FieldElement(limbs: [0, 0, 0, 0])
    static let one = FieldElement(1)

    private init(limbs: InlineArray<4, UInt64>) { self.limbs = limbs }

    init(_ number: UInt64) { self = FieldElement(limbs: [number, 0, 0, 0]) * Self.square }

    /// Reads 32 bytes, big-endian; nil for another length, and for a number that is not below p.
    init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 32 else { return nil }
        var limbs: InlineArray<4, UInt64> = [0, 0, 0, 0]
        for (index, byte) in bytes.enumerated() { limbs[3 - index / 8] = limbs[3 - index / 8] << 8 | UInt64(byte) }
        guard Self.subtract(limbs, Self.modulus).borrow == 1 else { return nil }
        self = FieldElement(limbs: limbs) * Self.square
    }

    /// 32 bytes, big-endian.
    var bytes: [UInt8] {
        let plain = (self * FieldElement(limbs: [1, 0, 0, 0])).limbs
        return (0..<32).map { UInt8(truncatingIfNeeded: plain[3 - $0 / 8] >> UInt64(56 - $0 % 8 * 8)) }
    }

    var isZero: Bool { limbs[0] | limbs[1] | limbs[2] | limbs[3] == 0 }

    private static func subtract(
        _ left: InlineArray<4, UInt64>,
        _ right: InlineArray<4, UInt64>
    ) -> (difference: InlineArray<4, UInt64>, borrow: UInt64) {
        var (difference, borrow) = (left, UInt64(0))
        for index in 0..<4 {
            let (first, one) = left[index].subtractingReportingOverflow(right[index])
            let (second, two) = first.subtractingReportingOverflow(borrow)
            difference[index] = second
            borrow = (one ? 1 : 0) | (two ? 1 : 0)
        }
        return (difference, borrow)
    }

    /// Returns `second` for 1 and `first` for 0.
    static func choose(_ bit: UInt64, _ first: FieldElement, _ second: FieldElement) -> FieldElement {
        let mask = 0 &- bit
        var limbs = first.limbs
        for index in 0..<4 { limbs[index] ^= mask & (first.limbs[index] ^ second.limbs[index]) }
        return FieldElement(limbs: limbs)
    }

    /// Reduces a number below 2p.
    private static func reduced(_ limbs: InlineArray<4, UInt64>) -> FieldElement {
        let (difference, borrow) = subtract(limbs, modulus)
        return choose(borrow, FieldElement(limbs: difference), FieldElement(limbs: limbs))
    }

    static func + (left: FieldElement, right: FieldElement) -> FieldElement {
        var (sum, carry) = (left.limbs, UInt64(0))
        for index in 0..<4 {
            let (high, low) = multiply(right.limbs[index], 1, left.limbs[index], carry)
            sum[index] = low
            carry = high
        }
        // The sum has no carry: p has 254 bits.
        return reduced(sum)
    }

    static func - (left: FieldElement, right: FieldElement) -> FieldElement { left + -right }

    static prefix func - (number: FieldElement) -> FieldElement { reduced(subtract(modulus, number.limbs).difference) }

    /// Returns left · right + first + second, which always fits.
    private static func multiply(
        _ left: UInt64,
        _ right: UInt64,
        _ first: UInt64,
        _ second: UInt64
    ) -> (high: UInt64, low: UInt64) {
        let product = left.multipliedFullWidth(by: right)
        let (one, firstCarry) = product.low.addingReportingOverflow(first)
        let (two, secondCarry) = one.addingReportingOverflow(second)
        return (product.high &+ (firstCarry ? 1 : 0) &+ (secondCarry ? 1 : 0), two)
    }

    /// Multiplies by Montgomery's method: after each limb of `right`, a multiple of p makes the lowest limb zero.
    static func * (left: FieldElement, right: FieldElement) -> FieldElement {
        var sum: InlineArray<5, UInt64> = [0, 0, 0, 0, 0]
        for index in 0..<4 {
            var carry: UInt64 = 0
            for place in 0..<4 {
                (carry, sum[place]) = multiply(left.limbs[place], right.limbs[index], sum[place], carry)
            }
            // No carry is lost: p has 254 bits, so the sum stays below 2p · 2⁶⁴.
            sum[4] &+= carry
            let multiple = sum[0] &* factor
            carry = multiply(multiple, modulus[0], sum[0], 0).high
            for place in 1..<4 {
                (carry, sum[place - 1]) = multiply(multiple, modulus[place], sum[place], carry)
            }
            sum[3] = sum[4] &+ carry
            sum[4] = 0
        }
        return reduced([sum[0], sum[1], sum[2], sum[3]])
    }

    /// The inverse; zero for zero. It is the power p - 2 (Fermat).
    var inverse: FieldElement {
        var result = Self.one
        let exponent = Self.subtract(Self.modulus, [2, 0, 0, 0]).difference
        for index in (0..<256).reversed() {
            result = result * result
            if exponent[index / 64] >> UInt64(index % 64) & 1 == 1 { result = result * self }
        }
        return result
    }
}

/// A number a + bi of the field with i² = -1 over the field of BN254CX.
struct ComplexElement: Sendable {
    var real: FieldElement
    var imaginary: FieldElement

    static let zero = ComplexElement(real: .zero, imaginary: .zero)
    static let one = ComplexElement(real: .one, imaginary: .zero)

    var isZero: Bool { real.isZero && imaginary.isZero }

    static func choose(_ bit: UInt64, _ first: ComplexElement, _ second: ComplexElement) -> ComplexElement {
        ComplexElement(
            real: .choose(bit, first.real, second.real),
            imaginary: .choose(bit, first.imaginary, second.imaginary)
        )
    }

    static func + (left: ComplexElement, right: ComplexElement) -> ComplexElement {
        ComplexElement(real: left.real + right.real, imaginary: left.imaginary + right.imaginary)
    }

    static func - (left: ComplexElement, right: ComplexElement) -> ComplexElement {
        ComplexElement(real: left.real - right.real, imaginary: left.imaginary - right.imaginary)
    }

    static func * (left: ComplexElement, right: ComplexElement) -> ComplexElement {
        ComplexElement(
            real: left.real * right.real - left.imaginary * right.imaginary,
            imaginary: left.real * right.imaginary + left.imaginary * right.real
        )
    }

    var inverse: ComplexElement {
        let norm = (real * real + imaginary * imaginary).inverse
        return ComplexElement(real: real * norm, imaginary: -(imaginary * norm))
    }
}
