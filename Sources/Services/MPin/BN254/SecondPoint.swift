// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Text

/// A point of the second group of BN254CX: y² = x³ + 1 - i over the field with i² = -1.
///
/// An M-Pin client needs it for one thing only: the public key of a key pair that it makes itself.
package struct SecondPoint: Sendable {
    /// The point (x/z, y/z); infinity if z is zero.
    private let x: ComplexElement
    private let y: ComplexElement
    private let z: ComplexElement

    /// The length of an encoding in bytes: real and imaginary part of x, then of y.
    package static let encodedCount = 4 * Group.fieldCount

    private static let infinity = SecondPoint(x: .zero, y: .one, z: .zero)
    /// The constant of the curve is 2/(1 + i) = 1 - i.
    private static let constant = ComplexElement(real: .one, imaginary: -.one)
    private static let tripleConstant = constant + constant + constant

    private init(x: ComplexElement, y: ComplexElement, z: ComplexElement) { (self.x, self.y, self.z) = (x, y, z) }

    /// Reads a point.
    /// - Throws: `.invalidPoint` for another length, and for a point that is not on the curve.
    package init(_ encoding: [UInt8]) throws(CryptoError) {
        guard encoding.count == Self.encodedCount else { throw .invalidPoint }
        var parts: [FieldElement] = []
        for start in stride(from: 0, to: encoding.count, by: Group.fieldCount) {
            guard let part = FieldElement(encoding[start..<start + Group.fieldCount]) else { throw .invalidPoint }
            parts.append(part)
        }
        let x = ComplexElement(real: parts[0], imaginary: parts[1])
        let y = ComplexElement(real: parts[2], imaginary: parts[3])
        guard (y * y - x * x * x - Self.constant).isZero else { throw .invalidPoint }
        self.init(x: x, y: y, z: .one)
    }

    /// The generator of the group.
    private static let generator = Result<SecondPoint, CryptoError> { () throws(CryptoError) in
        let parts = [
            "19682d2c7053b256358b2500f5c34bbb907c85bfa03e2726c0851ceee4d2ec74",
            "1466b9ec3e19f64aa011c937a8e99743f81b97b0c209c30f47a58e8b2e29cfe1",
            "0a79edd972332b8dd81e22157daee2096361b33d847ec1b30cfbfcebcf0be09f",
            "06160c39ecc4c09035c6e4512d8d3461c2864ea569d2edebed904b228898ee9d",
        ]
        return try SecondPoint(Hex.decode(parts.joined()) ?? [])
    }

    /// Returns the encoding.
    /// - Throws: `.invalidPoint` for infinity, which has none.
    package func encoded() throws(CryptoError) -> [UInt8] {
        guard !z.isZero else { throw .invalidPoint }
        let inverse = z.inverse
        let (x, y) = (x * inverse, y * inverse)
        return x.real.bytes + x.imaginary.bytes + y.real.bytes + y.imaginary.bytes
    }

    /// Multiplies the generator, in constant time.
    package static func generator(times scalar: borrowing Scalar) throws(CryptoError) -> SecondPoint {
        try generator.get().multiplied(by: scalar)
    }

    package func multiplied(by scalar: borrowing Scalar) throws(CryptoError) -> SecondPoint {
        try scalar.encoded().withBytes { bytes in
            var result = Self.infinity
            for byte in bytes {
                for bit in (0..<8).reversed() {
                    result = result.adding(result)
                    result = .choose(UInt64(byte >> UInt8(bit) & 1), result, result.adding(self))
                }
            }
            return result
        }
    }

    private static func choose(_ bit: UInt64, _ first: SecondPoint, _ second: SecondPoint) -> SecondPoint {
        SecondPoint(
            x: .choose(bit, first.x, second.x),
            y: .choose(bit, first.y, second.y),
            z: .choose(bit, first.z, second.z)
        )
    }

    /// Adds by the complete formulas for y² = x³ + b, which also hold for equal points and for infinity. Renes,
    /// Costello, Batina: Complete addition formulas for prime order elliptic curves, algorithm 7.
    private func adding(_ other: SecondPoint) -> SecondPoint {
        let (xx, yy, zz) = (x * other.x, y * other.y, z * other.z)
        let xy = (x + y) * (other.x + other.y) - xx - yy
        let yz = (y + z) * (other.y + other.z) - yy - zz
        let xz = ((x + z) * (other.x + other.z) - xx - zz) * Self.tripleConstant
        let triple = xx + xx + xx
        let constant = zz * Self.tripleConstant
        let (sum, difference) = (yy + constant, yy - constant)
        return SecondPoint(
            x: xy * difference - yz * xz,
            y: difference * sum + xz * triple,
            z: sum * yz + triple * xy
        )
    }
}
