// SPDX-License-Identifier: GPL-3.0-or-later
import CSecp256k1
package import Crypto

/// A public key: a point of secp256k1 other than the point at infinity. SEC 2, 2.4.1.
package struct PublicKey: Sendable, Hashable {
    /// The 65 bytes 04, x and y.
    package let uncompressed: [UInt8]

    /// The number of bytes of the two encodings.
    package static let compressedCount = 33
    package static let uncompressedCount = 65

    /// Reads a compressed or an uncompressed point.
    /// - Throws: `.invalidPoint` for other bytes, and for a point that is not on the curve.
    package init(_ bytes: [UInt8]) throws(CryptoError) {
        let context = try Context.pointer
        var key = secp256k1_pubkey()
        guard Self.hasKnownForm(bytes), secp256k1_ec_pubkey_parse(context, &key, bytes, bytes.count) == 1 else {
            throw .invalidPoint
        }
        try self.init(key)
    }

    init(_ key: secp256k1_pubkey) throws(CryptoError) {
        var key = key
        var bytes = [UInt8](repeating: 0, count: Self.uncompressedCount)
        var count = bytes.count
        guard secp256k1_write_uncompressed(try Context.pointer, &bytes, &count, &key) == 1, count == bytes.count else {
            throw .invalidPoint
        }
        uncompressed = bytes
    }

    /// The hybrid form of the library (06, 07) is refused.
    private static func hasKnownForm(_ bytes: [UInt8]) -> Bool {
        switch bytes.first {
        case 2, 3: bytes.count == compressedCount
        case 4: bytes.count == uncompressedCount
        default: false
        }
    }

    /// The 33 bytes 02 or 03, and x.
    package var compressed: [UInt8] {
        [2 + (uncompressed[64] & 1)] + uncompressed[1...32]
    }

    /// The key as the library takes it.
    var parsed: secp256k1_pubkey {
        get throws(CryptoError) {
            var key = secp256k1_pubkey()
            guard secp256k1_ec_pubkey_parse(try Context.pointer, &key, uncompressed, uncompressed.count) == 1 else {
                throw .invalidPoint
            }
            return key
        }
    }
}
