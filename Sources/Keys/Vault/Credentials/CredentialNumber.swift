// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A card number that is taken from a public key: the rightmost bits of its x coordinate. Leading zeros count.
package struct CredentialNumber: Sendable, Equatable {
    package let bits: Int
    /// The number, big-endian, in as few bytes as the bits need.
    package let bytes: [UInt8]

    /// The lengths in use. 64 is the smallest, 75 is for old panels, 256 is the whole coordinate.
    package static let lengths = [64, 75, 128, 200, 256]

    /// Takes a number from a public key; nil unless the key has 65 bytes and `bits` is in 1...256.
    package init?(publicKey: [UInt8], bits: Int) {
        guard publicKey.count == 65, (1...256).contains(bits) else { return nil }
        let count = (bits + 7) / 8
        var bytes = Array(publicKey[33 - count..<33])
        if bits % 8 != 0 { bytes[0] &= UInt8(truncatingIfNeeded: (1 << (bits % 8)) - 1) }
        self.bits = bits
        self.bytes = bytes
    }

    /// Returns the number of a key in each of `lengths`; empty for an invalid key.
    package static func views(of publicKey: [UInt8]) -> [CredentialNumber] {
        lengths.compactMap { CredentialNumber(publicKey: publicKey, bits: $0) }
    }

    package var hex: String { Hex.encode(bytes) }

    /// The number in decimal digits, without leading zeros.
    package var decimal: String {
        let digits = Radix.convert(bytes, from: 256, to: 10)
        return digits.isEmpty ? "0" : String(decoding: digits.map { $0 + UInt8(ascii: "0") }, as: UTF8.self)
    }

    package func write(to object: inout JSONWriter) {
        object.member("bits", bits)
        object.member("hex", hex)
        object.member("decimal", decimal)
    }
}

/// A key of an open credential that can sign. The private part stays where it is kept.
package protocol CredentialKey: Sendable {
    /// A point of P-256: 65 bytes, uncompressed.
    var publicKey: [UInt8] { get }

    /// Signs a SHA-256 digest with ECDSA. Returns r and s, 64 bytes.
    func sign(digest: [UInt8]) async throws(Failure) -> [UInt8]
}
