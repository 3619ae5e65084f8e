// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A public key: a point on its curve and is not the point at infinity.
package struct ECPublicKey: Sendable, Equatable {
    package let curve: Curve
    /// The uncompressed encoding: 04, x, y, both coordinates at full field length. TR-03111 3.2.1.
    package let uncompressed: [UInt8]

    /// Reads an uncompressed point.
    /// - Throws: `.invalidPoint` for another length or form, and for a point that is not on the curve.
    package init(_ uncompressed: [UInt8], on curve: Curve) throws(CryptoError) {
        _ = try ECPoint(uncompressed, on: try curve.group)
        self.init(checked: uncompressed, on: curve)
    }

    /// Reads a compressed point: 02 or 03, and x at full field length. TR-03111 3.2.1.
    /// - Throws: `.invalidPoint` for another length or form, and for an x that no point of the curve has.
    package init(compressedPoint encoding: [UInt8], on curve: Curve) throws(CryptoError) {
        let group = try curve.group
        self.init(checked: try ECPoint(compressed: encoding, on: group).uncompressed(on: group), on: curve)
    }

    init(checked uncompressed: [UInt8], on curve: Curve) {
        self.curve = curve
        self.uncompressed = uncompressed
    }

    /// The compressed encoding: 02 or 03, and x at full field length. TR-03111 3.2.1.
    package var compressedPoint: [UInt8] { [2 | (uncompressed.last ?? 0) & 1] + compressed }

    /// Comp(): the x coordinate at full field length, with leading zero bytes. TR-03110-3 A.2.2.3.
    package var compressed: [UInt8] { Array(uncompressed.dropFirst().prefix(curve.fieldLength)) }

    /// Multiplies the point by a big-endian number.
    /// - Throws: `.invalidKey` unless the number is in 1 ..< order.
    package func multiplied(by number: borrowing Secret) throws(CryptoError) -> ECPublicKey {
        let group = try curve.group
        let scalar = try BigNumber(number)
        guard group.accepts(scalar) else { throw .invalidKey }
        let product = try group.multiply(try ECPoint(uncompressed, on: group), by: scalar)
        return ECPublicKey(checked: try product.uncompressed(on: group), on: curve)
    }
}
