// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// The computations of the client with the shares of the trust authorities. Points are encoded in 65 bytes.
package enum ClientKeys {
    /// The length of a point in bytes.
    package static let encodedCount = Point.encodedCount
    /// The length of a number in bytes.
    package static let scalarCount = Scalar.encodedCount

    /// Adds both shares of the client secret, or of a time permit.
    /// - Throws: `.invalidPoint` if a share is not a point of the curve, or if the sum is infinity.
    package static func sum(_ first: borrowing Secret, _ second: borrowing Secret) throws(CryptoError) -> Secret {
        try Point(first).adding(try Point(second)).secret()
    }

    /// Subtracts the PIN from the client secret. The result is the token, which is useless without the PIN.
    package static func token(
        from clientSecret: borrowing Secret,
        _ pin: borrowing PIN,
        _ id: MPinID
    ) throws(CryptoError) -> Secret {
        let part = try id.point().multiplied(by: try pin.scalar())
        return try Point(clientSecret).adding(try part.negated()).secret()
    }
}

extension ClientKeys {
    /// Adds both shares of the client secret on the pool, so that the loop is not blocked. Both are taken once.
    @concurrent
    package static func clientSecret(_ first: SecretBox, _ second: SecretBox) async throws(Failure) -> SecretBox {
        guard let first = first.take(), let second = second.take() else { throw Failure.ofServer(.invalidKey) }
        return try serverValues(SecretBox(try sum(first, second)))
    }

    /// Subtracts the PIN from the client secret on the pool, so that the loop is not blocked. The secret is taken once.
    @concurrent
    package static func token(
        from clientSecret: SecretBox,
        _ factors: Factors,
        _ id: MPinID
    ) async throws(Failure) -> SecretBox {
        guard let secret = clientSecret.take() else { throw Failure.ofServer(.invalidKey) }
        return try serverValues(SecretBox(try token(from: secret, try factors.pin(), id)))
    }
}

/// The digits of a PIN for M-Pin, and a second factor, if the user has one.
package struct PIN: ~Copyable {
    /// The number of digits.
    package static let length = 4

    private let digits: Secret
    /// 0 without a second factor.
    private let factor: UInt32

    /// Takes digits; nil for another number of them and for other characters.
    package init?(_ digits: consuming Secret) {
        guard Self.isValid(digits) else { return nil }
        self.digits = digits
        factor = 0
    }

    /// Takes digits and a second factor, of which 31 bits of the hash count.
    /// - Throws: `.invalidKey` for digits that are no PIN.
    package init(_ digits: borrowing Secret, _ factor: borrowing Secret?) throws(CryptoError) {
        guard PIN.isValid(digits) else { throw .invalidKey }
        let number: UInt32
        switch factor {
        case nil: number = 0
        case .some(let factor):
            let digest = try DigestAlgorithm.sha256.hash(factor)
            number = digest.withBytes { $0.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } } >> 1
        }
        self.digits = digits.clone()
        self.factor = number
    }

    private static func isValid(_ digits: borrowing Secret) -> Bool {
        digits.withBytes { $0.count == length && $0.allSatisfy { (0x30...0x39).contains($0) } }
    }

    fileprivate borrowing func scalar() throws(CryptoError) -> Scalar {
        try Scalar(factor + digits.withBytes { $0.reduce(0) { $0 * 10 + UInt32($1 - 0x30) } })
    }
}

/// What the user has typed: a PIN, and a second factor if there is one. It can be used for several computations.
package final class Factors: Sendable {
    private let digits: Secret
    private let second: Secret?

    package init(_ digits: consuming Secret, second: consuming Secret? = nil) {
        self.digits = digits
        self.second = second
    }

    func pin() throws(CryptoError) -> PIN { try PIN(digits, second) }
}

/// A proof that the client has the token and the PIN: the commitment of pass 1, and the answer of pass 2.
package struct LoginProof: ~Copyable {
    private let id: MPinID
    private let x: Scalar
    /// x times the point of the identifier.
    package let u: [UInt8]
    /// x times the sum of the points of the identifier and of the day; nil without time permits.
    package let ut: [UInt8]?

    /// Begins a proof with a random number.
    package init(_ id: MPinID, day: PermitDay?) throws(CryptoError) {
        try self.init(id, day: day, x: try Scalar.random())
    }

    /// Begins a proof with a given number, for tests.
    init(_ id: MPinID, day: PermitDay?, x: consuming Scalar) throws(CryptoError) {
        let point = try id.point()
        let u = try point.multiplied(by: x).encoded()
        var ut: [UInt8]?
        if let day { ut = try point.adding(try id.point(of: day)).multiplied(by: x).encoded() }
        self.id = id
        self.u = u
        self.ut = ut
        self.x = x
    }

    /// Returns V, the answer to the challenge `y`. `permit` is the sum of both shares of the time permit; nil without time
    /// permits.
    /// - Throws: `CryptoError` for a challenge that is out of range, and for a point that is not on the curve.
    package borrowing func answer(
        to y: borrowing Secret,
        token: borrowing Secret,
        _ pin: borrowing PIN,
        permit: borrowing Secret?
    ) throws(CryptoError) -> [UInt8] {
        try respond(to: y, key: try Self.key(id, token: token, pin, permit: permit))
    }

    /// Returns token + PIN · A + time permit.
    static func key(
        _ id: MPinID,
        token: borrowing Secret,
        _ pin: borrowing PIN,
        permit: borrowing Secret?
    ) throws(CryptoError) -> Point {
        var key = try Point(token).adding(try id.point().multiplied(by: try pin.scalar()))
        switch permit {
        case nil: break
        case .some(let permit): key = try key.adding(try Point(permit))
        }
        return key
    }

    borrowing func respond(to y: borrowing Secret, key: borrowing Point) throws(CryptoError) -> [UInt8] {
        try respond(toScalar: try Scalar(y), key: key)
    }

    private borrowing func respond(
        toScalar y: borrowing Scalar,
        key: borrowing Point
    ) throws(CryptoError) -> [UInt8] {
        try key.multiplied(by: try x.adding(y)).negated().encoded()
    }

    /// Returns V for a document: the challenge is the hash of the time, of U and of the hash of the document.
    borrowing func sign(
        _ documentHash: [UInt8],
        at epochTime: UInt32,
        token: borrowing Secret,
        _ pin: borrowing PIN
    ) throws(CryptoError) -> [UInt8] {
        let time = withUnsafeBytes(of: epochTime.bigEndian) { Array($0) }
        let y = try Scalar(reducing: try DigestAlgorithm.sha256.hash(time + u + documentHash))
        let none: Secret? = nil
        return try respond(toScalar: y, key: try Self.key(id, token: token, pin, permit: none))
    }
}
