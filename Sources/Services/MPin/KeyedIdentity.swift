// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// An identity with a public key of its own. The trust authorities together cannot compute its client secret, since the
/// client multiplies it by the private key.
package struct KeyedIdentity: Sendable, Equatable {
    package let id: MPinID
    /// 128 bytes: a point of the second group.
    package let publicKey: [UInt8]
    /// Which trust authorities have given the secret, as the server wrote it.
    package let dtas: String

    /// The maximum number of bytes of `dtas`.
    static let maximumAuthorities = 4096

    /// - Returns: nil for a key that is no point, and for a text that is too long.
    package init?(id: MPinID, publicKey: [UInt8], dtas: String) {
        guard (try? SecondPoint(publicKey)) != nil, dtas.utf8.count <= Self.maximumAuthorities else { return nil }
        self.id = id
        self.publicKey = publicKey
        self.dtas = dtas
    }

    /// The identifier to which the client secret belongs.
    package var signingID: MPinID { id.with(publicKey: publicKey) }

    /// Reads an object of the store; nil if it is damaged.
    package init?(_ json: JSON) {
        guard let id = json["mpinId"]?.string.flatMap({ MPinID($0) }), let dtas = json["dtas"]?.string,
            let publicKey = json["publicKey"]?.string.flatMap({ Hex.decode($0) })
        else { return nil }
        self.init(id: id, publicKey: publicKey, dtas: dtas)
    }

    package func write(to object: inout JSONWriter) {
        object.member("mpinId", id.text)
        object.member("dtas", dtas)
        object.member("publicKey", Hex.encode(publicKey))
    }
}

/// A key pair that the client makes for a registration. The private key is discarded when the client secret is
/// computed.
package struct IdentityKeys: Sendable {
    /// 32 bytes.
    private let privateKey: SecretBox
    package let publicKey: [UInt8]

    /// Makes a pair on the pool, so that the loop is not blocked.
    @concurrent
    package static func make() async throws(Failure) -> IdentityKeys {
        return try serverValues(IdentityKeys(try Scalar.random()))
    }

    /// The public key is the generator multiplied by the inverse of the private key.
    package init(_ privateKey: consuming Scalar) throws(CryptoError) {
        publicKey = try SecondPoint.generator(times: try privateKey.inverted()).encoded()
        self.privateKey = SecretBox(try privateKey.encoded())
    }

    /// Adds both shares and multiplies the sum by the private key, which is taken once.
    @concurrent
    package func clientSecret(_ first: SecretBox, _ second: SecretBox) async throws(Failure) -> SecretBox {
        guard let first = first.take(), let second = second.take(), let key = privateKey.take() else {
            throw Failure.ofServer(.invalidKey)
        }
        return try translating(Failure.ofServer) { () throws(CryptoError) in
            let sum = try Point(try ClientKeys.sum(first, second))
            return SecretBox(try sum.multiplied(by: try Scalar(key)).secret())
        }
    }
}

/// A signature that only the verifier can check, because the check needs the secret of the server.
package struct DocumentSignature: Sendable, Equatable {
    package let identity: KeyedIdentity
    /// 32 bytes.
    package let hash: [UInt8]
    /// Seconds since 1970.
    package let epochTime: UInt32
    /// Points, 65 bytes each.
    package let u: [UInt8]
    package let v: [UInt8]

    /// Signs on the pool, so that the loop is not blocked. The token is taken once.
    @concurrent
    package static func sign(
        _ hash: [UInt8],
        at epochTime: UInt32,
        _ identity: KeyedIdentity,
        token: SecretBox,
        _ factors: Factors
    ) async throws(Failure) -> DocumentSignature {
        guard let token = token.take() else { throw Failure.ofServer(.invalidKey) }
        return try translating(Failure.ofServer) { () throws(CryptoError) in
            let proof = try LoginProof(identity.signingID, day: nil)
            let v = try proof.sign(hash, at: epochTime, token: token, try factors.pin())
            return DocumentSignature(identity: identity, hash: hash, epochTime: epochTime, u: proof.u, v: v)
        }
    }
}
