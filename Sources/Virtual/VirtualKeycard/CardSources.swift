// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import HDWallet
package import Keycard
package import Text

/// The key of a card for the agreement on a channel.
package protocol AgreementKey: Sendable {
    var publicKey: PublicKey { get }
    /// The x coordinate of the shared point.
    func sharedX(with peer: PublicKey) throws(CryptoError) -> Secret
}

/// A random key.
final class DrawnKey: AgreementKey {
    private let key: PrivateKey

    init(_ key: consuming PrivateKey) { self.key = key }

    var publicKey: PublicKey { key.publicKey }

    func sharedX(with peer: PublicKey) throws(CryptoError) -> Secret { try key.sharedX(with: peer) }
}

/// Everything of a virtual Keycard that differs from run to run. A test replaces it to repeat a recorded dialogue.
package struct CardSources: Sendable {
    package var random: KeycardRandom
    /// Makes the key of a 3.x card, or of one channel of a 4.0 card.
    package var agreementKey: @Sendable () throws(CryptoError) -> any AgreementKey
    /// Signs a hash and writes the signature in DER.
    package var sign: @Sendable (_ hash: [UInt8], borrowing PrivateKey) throws(CryptoError) -> [UInt8]

    package init(
        random: KeycardRandom,
        agreementKey: @escaping @Sendable () throws(CryptoError) -> any AgreementKey,
        sign: @escaping @Sendable (_ hash: [UInt8], borrowing PrivateKey) throws(CryptoError) -> [UInt8]
    ) {
        self.random = random
        self.agreementKey = agreementKey
        self.sign = sign
    }

    package init(random: KeycardRandom = .system) {
        self.init(
            random: random,
            agreementKey: { () throws(CryptoError) in DrawnKey(try random.key()) },
            sign: { (hash, key) throws(CryptoError) in try Self.sign(hash, key, random) }
        )
    }

    /// Signs as the applet does: each time with another nonce, s in the lower half.
    ///
    /// The applet replaces half of the numbers s by n - s, and writes those in 32 bytes even if they are shorter. Such
    /// a signature is not minimal DER.
    private static func sign(
        _ hash: [UInt8],
        _ key: borrowing PrivateKey,
        _ random: KeycardRandom
    ) throws(CryptoError) -> [UInt8] {
        let signature = try key.sign(hash, entropy: try random.bytes(32))
        let isTurned = try random.bytes(1)[0] & 1 == 1
        guard isTurned, signature.compact[32] == 0 else { return signature.der }
        let first = signature.der.dropFirst(2).prefix(2 + Int(signature.der[3]))
        let numbers = first + [0x02, 32] + signature.compact.suffix(32)
        return [0x30, UInt8(truncatingIfNeeded: numbers.count)] + numbers
    }
}
