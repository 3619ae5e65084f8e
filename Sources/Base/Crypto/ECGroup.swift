// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Secrets

/// A number in memory that is wiped on release.
struct BigNumber: ~Copyable {
    /// BIGNUM; in the secure heap where the process has one, and always cleared when freed.
    let pointer: OpaquePointer

    init() throws(CryptoError) {
        pointer = try check(BN_secure_new())
        BN_set_flags(pointer, Int32(BN_FLG_CONSTTIME))
    }

    init(_ value: UInt) throws(CryptoError) {
        let number = try BigNumber()
        try check(BN_set_word(number.pointer, value))
        self = number
    }

    /// Reads a big-endian number.
    init(_ bytes: UnsafeRawBufferPointer) throws(CryptoError) {
        guard let count = Int32(exactly: bytes.count) else { throw .invalidLength }
        let number = try BigNumber()
        _ = try check(BN_bin2bn(bytes.octets, count, number.pointer))
        self = number
    }

    deinit { BN_clear_free(pointer) }
}

/// A point in memory that is wiped on release.
struct ECPoint: ~Copyable {
    /// EC_POINT.
    let pointer: OpaquePointer

    init(on group: ECGroup) throws(CryptoError) {
        pointer = try check(EC_POINT_new(group.pointer))
    }

    /// Reads an uncompressed encoding of exactly the curve's size; libcrypto checks that it lies on the curve.
    init(_ encoding: [UInt8], on group: ECGroup) throws(CryptoError) {
        guard encoding.first == 4, encoding.count == 1 + 2 * group.curve.fieldLength else { throw .invalidPoint }
        let point = try ECPoint(on: group)
        try check(EC_POINT_oct2point(group.pointer, point.pointer, encoding, encoding.count, nil), .invalidPoint)
        guard !point.isInfinity(on: group) else { throw .invalidPoint }
        self = point
    }

    deinit { EC_POINT_clear_free(pointer) }

    func isInfinity(on group: ECGroup) -> Bool { EC_POINT_is_at_infinity(group.pointer, pointer) != 0 }

    /// 04, x and y at full field length.
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

/// A cyclic group on one of the standardized curves: with the curve's generator, or with one that PACE mapped.
///
/// Scalars are secret. Each multiplication here hands libcrypto one scalar alone, so that its constant-time ladder runs
/// and never the faster sum of two products, whose steps depend on the scalars.
package final class ECGroup: @unchecked Sendable {
    // Sendable: all members are constants, and libcrypto only reads a finished EC_GROUP and EC_POINT.
    package let curve: Curve
    /// EC_GROUP with the curve's own generator.
    let pointer: OpaquePointer
    /// Keeps `pointer` alive in a mapped group.
    private let base: ECGroup?
    /// The mapped generator; nil for the curve's own. It never enters an EC_GROUP, which would not wipe it.
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

    /// Generic mapping: the group whose generator is nonce·G + H, where H is the shared point of both mapping keys.
    /// TR-03110-3 A.3.5.1.
    /// - Throws: `.invalidPoint` when H or the generator is the point at infinity.
    package func mapped(
        nonce: borrowing Secret,
        key: borrowing ECPrivateKey,
        peer: ECPublicKey
    ) throws(CryptoError) -> ECGroup {
        let product = try multiplyGenerator(by: nonce.withBytes { bytes throws(CryptoError) in try BigNumber(bytes) })
        let shared = try key.sharedPoint(with: peer)
        let sum = try ECPoint(on: self)
        try check(EC_POINT_add(pointer, sum.pointer, product.pointer, shared.pointer, nil))
        guard !sum.isInfinity(on: self) else { throw .invalidPoint }
        return ECGroup(curve: curve, pointer: pointer, base: base ?? self, generator: sum)
    }

    /// The generator, uncompressed. Of a mapped group it is a secret of the session: for tests only.
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

    /// A fresh scalar in 1 ..< order. The C function is BN_priv_rand_range.
    func randomScalar() throws(CryptoError) -> BigNumber {
        let scalar = try BigNumber()
        repeat {
            try check(BN_priv_rand_range(scalar.pointer, EC_GROUP_get0_order(pointer)))
        } while BN_is_zero(scalar.pointer) != 0
        return scalar
    }

    /// Is the number in 1 ..< order?
    func accepts(_ scalar: borrowing BigNumber) -> Bool {
        BN_is_zero(scalar.pointer) == 0 && BN_is_negative(scalar.pointer) == 0
            && BN_cmp(scalar.pointer, EC_GROUP_get0_order(pointer)) < 0
    }

    /// The curve's own parameters, written out, each number at full length.
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

/// A public number, big-endian, at exactly `count` bytes.
func octets(_ number: OpaquePointer, _ count: Int) throws(CryptoError) -> [UInt8] {
    var out = [UInt8](repeating: 0, count: count)
    guard BN_bn2binpad(number, &out, Int32(count)) == Int32(count) else {
        ERR_clear_error()
        throw .invalidLength
    }
    return out
}
