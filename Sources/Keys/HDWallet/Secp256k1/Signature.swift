// SPDX-License-Identifier: GPL-3.0-or-later
import CSecp256k1
package import Crypto

/// An ECDSA signature: r and s. SEC 1, 4.1.
package struct Signature: Sendable, Equatable {
    /// r, then s: 32 bytes each, big-endian.
    package let compact: [UInt8]

    /// Takes r and s.
    /// - Throws: `.invalidLength` unless there are 64 bytes; `.invalidKey` if r or s is not in 1 ..< order.
    package init(compact: [UInt8]) throws(CryptoError) {
        guard compact.count == 64 else { throw .invalidLength }
        var signature = secp256k1_ecdsa_signature()
        guard secp256k1_ecdsa_signature_parse_compact(try Context.pointer, &signature, compact) == 1,
            compact.prefix(32).contains(where: { $0 != 0 }), compact.suffix(32).contains(where: { $0 != 0 })
        else { throw .invalidKey }
        self.compact = compact
    }

    init(_ signature: secp256k1_ecdsa_signature) throws(CryptoError) {
        var signature = signature
        var bytes = [UInt8](repeating: 0, count: 64)
        guard secp256k1_ecdsa_signature_serialize_compact(try Context.pointer, &bytes, &signature) == 1 else {
            throw .library
        }
        compact = bytes
    }

    /// Reads the DER encoding SEQUENCE { INTEGER r, INTEGER s }.
    ///
    /// A needless zero byte before a number is accepted: cards write one in about 1 of 500 signatures.
    /// - Throws: `.invalidLength` for other bytes or bytes after the signature; `.invalidKey` as in `init(compact:)`.
    package init(der bytes: [UInt8]) throws(CryptoError) {
        guard bytes.count >= 2, bytes[0] == 0x30, bytes[1] < 0x80, bytes.count == 2 + Int(bytes[1]) else {
            throw .invalidLength
        }
        var rest = bytes[2...]
        var numbers: [UInt8] = []
        for _ in 0..<2 {
            guard rest.popFirst() == 0x02, let length = rest.popFirst(), length > 0, Int(length) <= rest.count else {
                throw .invalidLength
            }
            let digits = rest.prefix(Int(length)).drop { $0 == 0 }
            guard digits.count <= 32, (rest.first ?? 0) & 0x80 == 0 else { throw .invalidLength }
            numbers += [UInt8](repeating: 0, count: 32 - digits.count) + digits
            rest = rest.dropFirst(Int(length))
        }
        guard rest.isEmpty else { throw .invalidLength }
        try self.init(compact: numbers)
    }

    /// The shortest DER encoding.
    package var der: [UInt8] {
        let numbers = [compact.prefix(32), compact.suffix(32)].flatMap { number -> [UInt8] in
            var digits = Array(number.drop { $0 == 0 })
            if (digits.first ?? 0x80) & 0x80 != 0 { digits.insert(0, at: 0) }
            return [0x02, UInt8(truncatingIfNeeded: digits.count)] + digits
        }
        return [0x30, UInt8(truncatingIfNeeded: numbers.count)] + numbers
    }

    /// The same signature with s in the lower half of its range.
    package var normalized: Signature {
        get throws(CryptoError) {
            var signature = try parsed
            var lower = secp256k1_ecdsa_signature()
            // The result is whether s was changed, which does not matter here.
            _ = secp256k1_ecdsa_signature_normalize(try Context.pointer, &lower, &signature)
            return try Signature(lower)
        }
    }

    /// Whether this is a signature by `key` over a hash of 32 bytes. Both halves of the range of s are accepted.
    package func isValid(for hash: [UInt8], by key: PublicKey) throws(CryptoError) -> Bool {
        guard hash.count == 32 else { throw .invalidLength }
        var signature = try normalized.parsed
        var point = try key.parsed
        return secp256k1_ecdsa_verify(try Context.pointer, &signature, hash, &point) == 1
    }

    /// Finds the key that signed a hash; nil if there is no such key. SEC 1, 4.1.6.
    ///
    /// `id` is 0 to 3: the parity of y, and whether x overflows the order.
    package func recover(id: UInt8, for hash: [UInt8]) throws(CryptoError) -> PublicKey? {
        guard hash.count == 32 else { throw .invalidLength }
        guard id <= 3 else { return nil }
        let context = try Context.pointer
        var signature = secp256k1_ecdsa_recoverable_signature()
        var key = secp256k1_pubkey()
        guard
            secp256k1_ecdsa_recoverable_signature_parse_compact(context, &signature, compact, Int32(id)) == 1,
            secp256k1_ecdsa_recover(context, &key, &signature, hash) == 1
        else { return nil }
        return try PublicKey(key)
    }

    /// Finds the recovery ID of a signature by `key`; nil if `key` has not signed the hash.
    package func recoveryID(for hash: [UInt8], by key: PublicKey) throws(CryptoError) -> UInt8? {
        for id: UInt8 in 0...3 where try recover(id: id, for: hash) == key { return id }
        return nil
    }

    private var parsed: secp256k1_ecdsa_signature {
        get throws(CryptoError) {
            var signature = secp256k1_ecdsa_signature()
            guard secp256k1_ecdsa_signature_parse_compact(try Context.pointer, &signature, compact) == 1 else {
                throw .invalidKey
            }
            return signature
        }
    }
}
