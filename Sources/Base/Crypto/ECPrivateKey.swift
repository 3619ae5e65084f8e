// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// A private key on a group, with its public key. The scalar is wiped when the key is freed.
package struct ECPrivateKey: ~Copyable, @unchecked Sendable {
    // Unchecked: libcrypto only reads a finished BIGNUM.
    package let group: ECGroup
    package let publicKey: ECPublicKey
    let scalar: BigNumber

    /// Draws a key.
    package init(on group: ECGroup) throws(CryptoError) {
        try self.init(scalar: try group.randomScalar(), on: group)
    }

    /// Takes a key: a big-endian number of any length.
    /// - Throws: `.invalidKey` unless the number is in 1 ..< order.
    package init(_ scalar: borrowing Secret, on group: ECGroup) throws(CryptoError) {
        let number = try BigNumber(scalar)
        try self.init(scalar: number, on: group)
    }

    init(scalar: consuming BigNumber, on group: ECGroup) throws(CryptoError) {
        guard group.accepts(scalar) else { throw .invalidKey }
        let point = try group.multiplyGenerator(by: scalar)
        let encoding = try point.uncompressed(on: group)
        self.group = group
        self.scalar = scalar
        publicKey = ECPublicKey(checked: encoding, on: group.curve)
    }

    package borrowing func copy() throws(CryptoError) -> ECPrivateKey {
        try ECPrivateKey(scalar: try scalar.copy(), on: group)
    }

    /// Runs ECKA and returns the x coordinate of the shared point at full field length. TR-03111 4.3.1, TR-03110-3 A.2.3.
    package func sharedSecret(with peer: ECPublicKey) throws(CryptoError) -> Secret {
        let point = try sharedPoint(with: peer)
        let x = try BigNumber()
        try check(EC_POINT_get_affine_coordinates(group.pointer, point.pointer, x.pointer, nil, nil))
        let count = group.curve.fieldLength
        let number = x.pointer
        return try Secret(count: count) { out throws(CryptoError) in
            guard BN_bn2binpad(number, out.octets, Int32(count)) == Int32(count) else { throw .library }
        }
    }

    func sharedPoint(with peer: ECPublicKey) throws(CryptoError) -> ECPoint {
        guard peer.curve == group.curve else { throw .invalidPoint }
        let point = try group.multiply(try ECPoint(peer.uncompressed, on: group), by: scalar)
        guard !point.isInfinity(on: group) else { throw .invalidPoint }
        return point
    }

    /// Returns this key divided by `other` modulo the order, at full scalar length: the proof of PACE with chip
    /// authentication mapping. ICAO 9303-11 4.4.3.3.3.
    package borrowing func divided(by other: borrowing ECPrivateKey) throws(CryptoError) -> Secret {
        let order = EC_GROUP_get0_order(group.pointer)
        let context = try BigNumberContext()
        let inverse = try BigNumber()
        _ = try check(BN_mod_inverse(inverse.pointer, other.scalar.pointer, order, context.pointer))
        let quotient = try BigNumber()
        try check(BN_mod_mul(quotient.pointer, scalar.pointer, inverse.pointer, order, context.pointer))
        let count = group.curve.scalarLength
        let pointer = quotient.pointer
        return try Secret(count: count) { out throws(CryptoError) in
            guard BN_bn2binpad(pointer, out.octets, Int32(count)) == Int32(count) else { throw .library }
        }
    }
}
