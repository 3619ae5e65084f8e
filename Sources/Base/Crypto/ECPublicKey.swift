// SPDX-License-Identifier: GPL-3.0-or-later

/// A point of a curve that has been checked to lie on it and not to be the point at infinity.
package struct ECPublicKey: Sendable, Equatable {
    package let curve: Curve
    /// 04, x, y, both coordinates at full field length. TR-03111 3.2.1.
    package let uncompressed: [UInt8]

    /// Reads an uncompressed point; any other length or form is refused.
    /// - Throws: `.invalidPoint`.
    package init(_ uncompressed: [UInt8], on curve: Curve) throws(CryptoError) {
        _ = try ECPoint(uncompressed, on: try curve.group)
        self.init(checked: uncompressed, on: curve)
    }

    init(checked uncompressed: [UInt8], on curve: Curve) {
        (self.curve, self.uncompressed) = (curve, uncompressed)
    }

    /// Comp(): the x coordinate at full field length, leading zero bytes kept. TR-03110-3 A.2.2.3.
    package var compressed: [UInt8] { Array(uncompressed.dropFirst().prefix(curve.fieldLength)) }
}
