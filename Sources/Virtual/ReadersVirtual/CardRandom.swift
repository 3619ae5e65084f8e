// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// The source of the nonces, challenges and ephemeral keys of a virtual card.
package struct CardRandom: Sendable {
    private var seed: [UInt8]?
    private var counter: UInt64 = 0

    /// The generator of libcrypto.
    package static var system: CardRandom { CardRandom(seed: nil) }

    /// A generator that returns the same bytes for the same seed; only for tests.
    package static func seeded(_ seed: some Collection<UInt8>) -> CardRandom { CardRandom(seed: Array(seed)) }

    private init(seed: [UInt8]?) { self.seed = seed }

    package mutating func bytes(_ count: Int) throws(CryptoError) -> [UInt8] {
        guard let seed else { return try Random.bytes(count) }
        var out: [UInt8] = []
        while out.count < count {
            counter += 1
            out += try DigestAlgorithm.sha256.hash(seed + withUnsafeBytes(of: counter.bigEndian, Array.init))
        }
        return Array(out.prefix(count))
    }

    /// Returns `count` random bytes in wiped memory.
    package mutating func secret(_ count: Int) throws(CryptoError) -> Secret {
        guard seed != nil else { return try Random.secret(count) }
        return Secret(try bytes(count))
    }

    /// A private key for `curve`; nil when libcrypto draws it itself.
    package mutating func scalar(on curve: Curve) throws(CryptoError) -> Secret? {
        guard seed != nil else { return nil }
        while true {
            var number = try bytes(curve.scalarLength)
            if curve == .secp521r1 { number[0] &= 1 }
            let secret = Secret(number)
            do {
                _ = try ECPrivateKey(secret, on: try curve.group)
                return secret
            } catch .invalidKey {
                continue
            }
        }
    }
}
