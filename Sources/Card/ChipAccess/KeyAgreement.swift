// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// The standardized domain parameters: a curve, or integers modulo a prime. ICAO 9303-11 9.5.1, TR-03110-3 A.2.1.1.
package enum KeyAgreementDomain: Sendable, Hashable {
    case curve(Curve)
    case integers(DHParameters)

    /// Finds the domain of a parameter ID; nil for an ID without one.
    package init?(parameterID: UInt8) {
        if let curve = Curve(rawValue: parameterID) {
            self = .curve(curve)
        } else if let integers = DHParameters(rawValue: parameterID) {
            self = .integers(integers)
        } else {
            return nil
        }
    }

    package var parameterID: UInt8 {
        switch self {
        case .curve(let curve): curve.rawValue
        case .integers(let integers): integers.rawValue
        }
    }

    /// The group with the standardized generator.
    package var group: AgreementGroup {
        get throws(CryptoError) {
            switch self {
            case .curve(let curve): .curve(try curve.group)
            case .integers(let integers): .integers(try integers.group)
            }
        }
    }

    /// The length of the prime in bits.
    var primeBits: Int {
        switch self {
        case .curve(.secp521r1): 521
        case .curve(let curve): curve.fieldLength * 8
        case .integers(let integers): integers.primeLength * 8
        }
    }
}

/// A group for a key agreement, with the standardized generator or one that PACE has mapped.
package enum AgreementGroup: Sendable {
    case curve(ECGroup)
    case integers(DHGroup)

    /// Runs the generic mapping. ICAO 9303-11 4.4.3.3.1.
    package func mapped(
        nonce: borrowing Secret,
        key: borrowing AgreementPrivateKey,
        peer: AgreementPublicKey
    ) throws(CryptoError) -> AgreementGroup {
        switch (self, peer) {
        case (.curve(let group), .curve(let peer)):
            return .curve(
                try key.onCurve { key throws(CryptoError) in
                    try group.mapped(nonce: nonce, key: key, peer: peer)
                }
            )
        case (.integers(let group), .integers(let peer)):
            return .integers(
                try key.ofIntegers { key throws(CryptoError) in
                    try group.mapped(nonce: nonce, key: key, peer: peer)
                }
            )
        case (.curve, .integers), (.integers, .curve):
            throw .invalidPoint
        }
    }

    /// Runs the integrated mapping with a pseudo-random number. ICAO 9303-11 4.4.3.3.2.
    package func mapped(random: borrowing Secret) throws(CryptoError) -> AgreementGroup {
        switch self {
        case .curve(let group): .curve(try group.mapped(random: random))
        case .integers(let group): .integers(try group.mapped(random: random))
        }
    }
}

package enum AgreementPublicKey: Sendable, Equatable {
    case curve(ECPublicKey)
    case integers(DHPublicKey)

    /// Reads an uncompressed point or a big-endian number.
    /// - Throws: `.invalidPoint` for a point that is not on the curve, and a number out of the subgroup.
    package init(_ bytes: [UInt8], in domain: KeyAgreementDomain) throws(CryptoError) {
        switch domain {
        case .curve(let curve): self = .curve(try ECPublicKey(bytes, on: curve))
        case .integers(let integers): self = .integers(try DHPublicKey(bytes, in: integers))
        }
    }

    /// The bytes that are sent: an uncompressed point, or a number without leading zeros.
    package var encoded: [UInt8] {
        switch self {
        case .curve(let key): key.uncompressed
        case .integers(let key): key.bytes
        }
    }

    /// The tag of the key in a public key data object. TR-03110-3 D.3.2, D.3.3.
    package var tag: UInt32 {
        switch self {
        case .curve: 0x86
        case .integers: 0x84
        }
    }

    /// Comp(): the x coordinate, or the SHA-1 of the number. TR-03110-3 A.2.2.3.
    package var compressed: [UInt8] {
        get throws(CryptoError) {
            switch self {
            case .curve(let key): key.compressed
            case .integers(let key): try DigestAlgorithm.sha1.hash(key.bytes)
            }
        }
    }
}

/// A private key of a key agreement, which is wiped when it is freed.
package enum AgreementPrivateKey: ~Copyable, Sendable {
    case curve(ECPrivateKey)
    case integers(DHPrivateKey)

    /// Draws a key.
    package init(on group: AgreementGroup) throws(CryptoError) {
        switch group {
        case .curve(let group): self = .curve(try ECPrivateKey(on: group))
        case .integers(let group): self = .integers(try DHPrivateKey(on: group))
        }
    }

    /// Takes a key: a big-endian number.
    package init(_ number: borrowing Secret, on group: AgreementGroup) throws(CryptoError) {
        switch group {
        case .curve(let group): self = .curve(try ECPrivateKey(number, on: group))
        case .integers(let group): self = .integers(try DHPrivateKey(number, on: group))
        }
    }

    package var publicKey: AgreementPublicKey {
        switch self {
        case .curve(let key): .curve(key.publicKey)
        case .integers(let key): .integers(key.publicKey)
        }
    }

    package var group: AgreementGroup {
        switch self {
        case .curve(let key): .curve(key.group)
        case .integers(let key): .integers(key.group)
        }
    }

    /// Returns the x coordinate of the shared point at full field length, or the shared number at the length of the
    /// prime. ICAO 9303-11 9.6.
    package func sharedSecret(with peer: AgreementPublicKey) throws(CryptoError) -> Secret {
        switch peer {
        case .curve(let peer):
            return try onCurve { key throws(CryptoError) in try key.sharedSecret(with: peer) }
        case .integers(let peer):
            return try ofIntegers { key throws(CryptoError) in try key.sharedSecret(with: peer) }
        }
    }

    /// Runs `body` with the key if it is one on a curve.
    package borrowing func onCurve<T: ~Copyable>(
        _ body: (borrowing ECPrivateKey) throws(CryptoError) -> T
    ) throws(CryptoError) -> T {
        switch self {
        case .curve(let key): return try body(key)
        case .integers: throw .invalidPoint
        }
    }

    borrowing func ofIntegers<T: ~Copyable>(
        _ body: (borrowing DHPrivateKey) throws(CryptoError) -> T
    ) throws(CryptoError) -> T {
        switch self {
        case .curve: throw .invalidPoint
        case .integers(let key): return try body(key)
        }
    }
}
