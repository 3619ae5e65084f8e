// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import HDWallet
package import Text

/// The source of random numbers of a dialogue. Tests replace it to repeat a recorded dialogue.
package struct KeycardRandom: Sendable {
    package typealias Source = @Sendable (_ count: Int) throws(CryptoError) -> Secret

    private let source: Source

    package init(_ source: @escaping Source) { self.source = source }

    /// The generator of libcrypto.
    package static let system = KeycardRandom(Random.secret)

    package func secret(_ count: Int) throws(CryptoError) -> Secret { try source(count) }

    package func bytes(_ count: Int) throws(CryptoError) -> [UInt8] {
        try source(count).withBytes { Array($0) }
    }

    package func key() throws(CryptoError) -> PrivateKey { try PrivateKey.generate(source) }

    /// Draws decimal digits, each with the same chance.
    package func digits(_ count: Int) throws(CryptoError) -> Secret {
        var digits = Secret([])
        while digits.count < count {
            // A byte of 250 or more is drawn again, because it would make small digits more likely.
            let drawn = try source(1)
            let digit = drawn.withBytes { $0.first ?? 255 }
            if digit < 250 { digits = digits.appending([0x30 + digit % 10]) }
        }
        return digits
    }
}
