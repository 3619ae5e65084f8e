// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// A point in memory that is wiped on release.
struct ECPoint: ~Copyable {
    /// EC_POINT.
    let pointer: OpaquePointer

    init(on group: ECGroup) throws(CryptoError) {
        pointer = try check(EC_POINT_new(group.pointer))
    }

    /// Reads an uncompressed point.
    /// - Throws: `.invalidPoint` for another length, and for a point that is not on the curve.
    init(_ encoding: [UInt8], on group: ECGroup) throws(CryptoError) {
        guard encoding.first == 4, encoding.count == 1 + 2 * group.curve.fieldLength else { throw .invalidPoint }
        try self.init(anyForm: encoding, on: group)
    }

    /// Reads a compressed point: 02 or 03, and x.
    /// - Throws: `.invalidPoint` for another length, and for an x that no point of the curve has.
    init(compressed encoding: [UInt8], on group: ECGroup) throws(CryptoError) {
        guard encoding.first == 2 || encoding.first == 3, encoding.count == 1 + group.curve.fieldLength else {
            throw .invalidPoint
        }
        try self.init(anyForm: encoding, on: group)
    }

    private init(anyForm encoding: [UInt8], on group: ECGroup) throws(CryptoError) {
        let point = try ECPoint(on: group)
        try check(EC_POINT_oct2point(group.pointer, point.pointer, encoding, encoding.count, nil), .invalidPoint)
        guard !point.isInfinity(on: group) else { throw .invalidPoint }
        self = point
    }

    deinit { EC_POINT_clear_free(pointer) }

    func isInfinity(on group: ECGroup) -> Bool { EC_POINT_is_at_infinity(group.pointer, pointer) != 0 }

    /// Returns 04, x and y at full field length.
    func uncompressed(on group: ECGroup) throws(CryptoError) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: 1 + 2 * group.curve.fieldLength)
        let form = POINT_CONVERSION_UNCOMPRESSED
        guard EC_POINT_point2oct(group.pointer, pointer, form, &out, out.count, nil) == out.count else {
            ERR_clear_error()
            throw .invalidPoint
        }
        return out
    }
}

/// A cyclic group on a standardized curve, with the generator of the curve or a generator that PACE has mapped.
///
/// Scalars are secret. Each call passes one scalar to libcrypto, because a call with two products is not constant-time.
package final class ECGroup: @unchecked Sendable {
    // Sendable: all members are constants, and libcrypto only reads a finished EC_GROUP and EC_POINT.
    package let curve: Curve
    /// The EC_GROUP with the generator of the curve.
    let pointer: OpaquePointer
    /// Keeps `pointer` alive in a mapped group.
    private let base: ECGroup?
    /// The mapped generator; nil for the generator of the curve. It is kept out of the EC_GROUP, which would not wipe it.
    private let generator: ECPoint?

    fileprivate init(curve: Curve, pointer: OpaquePointer, base: ECGroup?, generator: consuming ECPoint?) {
        self.curve = curve
        self.pointer = pointer
        self.base = base
        self.generator = generator
    }

    /// The C function is EC_GROUP_new_by_curve_name.
    convenience init(_ curve: Curve) throws(CryptoError) {
        let pointer = try check(EC_GROUP_new_by_curve_name(curve.nid), .unsupported)
        self.init(curve: curve, pointer: pointer, base: nil, generator: nil)
    }

    deinit {
        if base == nil { EC_GROUP_free(pointer) }
    }

    /// Runs the generic mapping: returns the group with the generator nonce·G + H, where H is the shared point of both
    /// mapping keys. TR-03110-3 A.3.5.1.
    /// - Throws: `.invalidPoint` when H or the generator is the point at infinity.
    package func mapped(
        nonce: borrowing Secret,
        key: borrowing ECPrivateKey,
        peer: ECPublicKey
    ) throws(CryptoError) -> ECGroup {
        let product = try multiplyGenerator(by: BigNumber(nonce))
        let shared = try key.sharedPoint(with: peer)
        let sum = try ECPoint(on: self)
        try check(EC_POINT_add(pointer, sum.pointer, product.pointer, shared.pointer, nil))
        guard !sum.isInfinity(on: self) else { throw .invalidPoint }
        return ECGroup(curve: curve, pointer: pointer, base: base ?? self, generator: sum)
    }

    /// Runs the integrated mapping: returns the group whose generator is the point that encodes the pseudo-random number,
    /// which is reduced modulo the prime. ICAO 9303-11 4.4.3.3.2, appendix B.
    /// - Throws: `.unsupported` for a curve whose prime is 1 modulo 4, which has no such encoding.
    package func mapped(random: borrowing Secret) throws(CryptoError) -> ECGroup {
        let point = try PointEncoding.point(of: random, on: self)
        return ECGroup(curve: curve, pointer: pointer, base: base ?? self, generator: point)
    }

    /// The uncompressed generator; only for tests, since a mapped generator is a secret.
    package var generatorEncoding: [UInt8] {
        get throws(CryptoError) {
            try multiplyGenerator(by: try BigNumber(1)).uncompressed(on: self)
        }
    }

    func multiplyGenerator(by scalar: borrowing BigNumber) throws(CryptoError) -> ECPoint {
        let result = try ECPoint(on: self)
        switch generator {
        case nil:
            try check(EC_POINT_mul(pointer, result.pointer, scalar.pointer, nil, nil, nil))
        case .some(let own):
            try check(EC_POINT_mul(pointer, result.pointer, nil, own.pointer, scalar.pointer, nil))
        }
        return result
    }

    func multiply(_ point: borrowing ECPoint, by scalar: borrowing BigNumber) throws(CryptoError) -> ECPoint {
        let result = try ECPoint(on: self)
        try check(EC_POINT_mul(pointer, result.pointer, nil, point.pointer, scalar.pointer, nil))
        return result
    }

    /// Draws a scalar in 1 ..< order.
    func randomScalar() throws(CryptoError) -> BigNumber { try .random(below: EC_GROUP_get0_order(pointer)) }

    /// Whether the number is in 1 ..< order.
    func accepts(_ scalar: borrowing BigNumber) -> Bool { scalar.isScalar(below: EC_GROUP_get0_order(pointer)) }

    /// The explicit parameters of the curve, each number at full length.
    package var parameters: ExplicitDomainParameters {
        get throws(CryptoError) {
            let p = try BigNumber()
            let a = try BigNumber()
            let b = try BigNumber()
            try check(EC_GROUP_get_curve(pointer, p.pointer, a.pointer, b.pointer, nil))
            let form = POINT_CONVERSION_UNCOMPRESSED
            var generator = [UInt8](repeating: 0, count: 1 + 2 * curve.fieldLength)
            let point = try check(EC_GROUP_get0_generator(pointer))
            guard EC_POINT_point2oct(pointer, point, form, &generator, generator.count, nil) == generator.count else {
                ERR_clear_error()
                throw .library
            }
            return ExplicitDomainParameters(
                prime: try octets(p.pointer, curve.fieldLength),
                a: try octets(a.pointer, curve.fieldLength),
                b: try octets(b.pointer, curve.fieldLength),
                generator: generator,
                order: try octets(try check(EC_GROUP_get0_order(pointer)), curve.scalarLength),
                cofactor: try octets(try check(EC_GROUP_get0_cofactor(pointer)), 1)
            )
        }
    }
}

/// Returns a public number as `count` big-endian bytes.
func octets(_ number: OpaquePointer, _ count: Int) throws(CryptoError) -> [UInt8] {
    var out = [UInt8](repeating: 0, count: count)
    guard BN_bn2binpad(number, &out, Int32(count)) == Int32(count) else {
        ERR_clear_error()
        throw .invalidLength
    }
    return out
}
