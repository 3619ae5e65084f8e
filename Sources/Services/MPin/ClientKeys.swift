// SPDX-License-Identifier: GPL-3.0-or-later
import BN254
package import Crypto
package import Secrets

/// What the client computes from the shares of the trust authorities. Points are encoded in 65 bytes.
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

    /// Takes the PIN out of the client secret. What is left is the token, which is useless without the PIN.
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
    /// Adds both shares of the client secret, outside of the thread of the server. Both are taken once.
    @concurrent
    package static func clientSecret(_ first: SecretBox, _ second: SecretBox) async throws(MPinFailure) -> SecretBox {
        guard let first = first.take(), let second = second.take() else { throw MPinFailure(.invalidKey) }
        do throws(CryptoError) {
            return SecretBox(try sum(first, second))
        } catch {
            throw MPinFailure(error)
        }
    }

    /// Takes the PIN out of the client secret, outside of the thread of the server. Secret and PIN are taken once.
    @concurrent
    package static func token(
        from clientSecret: SecretBox,
        _ digits: SecretBox,
        _ id: MPinID
    ) async throws(MPinFailure) -> SecretBox {
        guard let secret = clientSecret.take(), let digits = digits.take(), let pin = PIN(digits) else {
            throw MPinFailure(.invalidKey)
        }
        do throws(CryptoError) {
            return SecretBox(try token(from: secret, pin, id))
        } catch {
            throw MPinFailure(error)
        }
    }
}

/// The digits of a PIN for M-Pin.
package struct PIN: ~Copyable {
    /// The number of digits.
    package static let length = 4

    private let digits: Secret

    /// Takes digits; nil for another number of them and for other characters.
    package init?(_ digits: consuming Secret) {
        let isValid = digits.withBytes { $0.count == Self.length && $0.allSatisfy { (0x30...0x39).contains($0) } }
        guard isValid else { return nil }
        self.digits = digits
    }

    fileprivate borrowing func scalar() throws(CryptoError) -> Scalar {
        try Scalar(digits.withBytes { $0.reduce(0) { $0 * 10 + UInt32($1 - 0x30) } })
    }
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
        (self.id, self.u, self.ut) = (id, u, ut)
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
        try key.multiplied(by: try x.adding(try Scalar(y))).negated().encoded()
    }
}
