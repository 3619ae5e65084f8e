// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// The public key of a PKOC credential, a point of P-256, and the card numbers that are parts of it.
package struct PKOCKey: Sendable, Equatable {
    package let publicKey: ECPublicKey

    /// The lengths in bits of the numbers that panels use. 75 bits are the advice for old panels.
    package static let numberLengths = [64, 75, 128, 200, 256]

    /// Reads 65 bytes: 04, X, Y.
    /// - Throws: `CryptoError.invalidPoint` unless the bytes are a point of P-256.
    package init(_ point: [UInt8]) throws(CryptoError) { publicKey = try ECPublicKey(point, on: .secp256r1) }

    package init(_ publicKey: ECPublicKey) { self.publicKey = publicKey }

    /// 65 bytes: 04, X, Y.
    package var point: [UInt8] { publicKey.uncompressed }

    /// X, the whole identifier: 32 bytes.
    package var identifier: [UInt8] { publicKey.compressed }

    /// The card number of this length: the rightmost bits of X, in as many bytes as they need. Unused bits of the first
    /// byte are zero. A length outside of 1...256 bits gives the nearest one.
    package func number(bits: Int) -> [UInt8] {
        let bits = min(max(bits, 1), 256)
        var number = Array(identifier.suffix((bits + 7) / 8))
        if bits % 8 != 0, let first = number.first { number[0] = first & (0xFF >> UInt8(8 - bits % 8)) }
        return number
    }

    /// The 64-bit number, which panels show in decimal.
    package var decimal64: UInt64 { number(bits: 64).reduce(0) { $0 << 8 | UInt64($1) } }
}
