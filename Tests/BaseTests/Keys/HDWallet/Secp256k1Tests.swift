// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import TestSupport
import Testing
import Text

@Suite("secp256k1")
struct Secp256k1Tests {
    private static let order = hex("FFFFFFFF FFFFFFFF FFFFFFFF FFFFFFFE BAAEDCE6 AF48A03B BFD25E8C D0364141")

    @Test("the public key of 1 is the generator of SEC 2")
    func generator() throws {
        let key = try PrivateKey(Secret([UInt8](repeating: 0, count: 31) + [1]))
        #expect(
            key.publicKey.compressed
                == hex("02 79BE667E F9DCBBAC 55A06295 CE870B07 029BFCDB 2DCE28D9 59F2815B 16F81798")
        )
        #expect(try PublicKey(key.publicKey.compressed) == key.publicKey)
    }

    @Test("numbers out of range are refused as keys")
    func invalidKeys() {
        for bytes in [[UInt8](repeating: 0, count: 32), Self.order, [1], []] {
            #expect(throws: CryptoError.invalidKey) { _ = try PrivateKey(Secret(bytes)) }
        }
    }

    @Test("bytes that are no point are refused, also the hybrid form")
    func invalidPoints() throws {
        let point = try PrivateKey.generate().publicKey.uncompressed
        var changed = point
        changed[64] ^= 1
        let hybrid = [6 + (point[64] & 1)] + point.dropFirst()
        for bytes in [
            [], [4], changed, hybrid, Array(point.dropLast()), point + [0], [2] + [UInt8](repeating: 0xFF, count: 32),
        ] {
            #expect(throws: CryptoError.invalidPoint) { _ = try PublicKey(bytes) }
        }
    }

    @Test("both sides of ECDH find the same x")
    func agreement() throws {
        let (first, second) = (KeyBox(try PrivateKey.generate()), KeyBox(try PrivateKey.generate()))
        let shared = try first.key.sharedX(with: second.key.publicKey)
        #expect(bytes(shared) == bytes(try second.key.sharedX(with: first.key.publicKey)))
        // 1 times a point is the point.
        let one = try PrivateKey(Secret([UInt8](repeating: 0, count: 31) + [1]))
        #expect(bytes(try one.sharedX(with: first.key.publicKey)) == Array(first.key.publicKey.uncompressed[1...32]))
    }

    @Test("a signature is valid for its hash and key only, and its key is recovered")
    func signature() throws {
        let key = try PrivateKey.generate()
        let hash = try DigestAlgorithm.sha256.hash(Array("text".utf8))
        let signature = try key.sign(hash)
        #expect(try signature.isValid(for: hash, by: key.publicKey))
        #expect(try !signature.isValid(for: hash.reversed(), by: key.publicKey))
        let id = try #require(try signature.recoveryID(for: hash, by: key.publicKey))
        #expect(try signature.recover(id: id, for: hash) == key.publicKey)
        #expect(try signature.recoveryID(for: hash.reversed(), by: key.publicKey) == nil)
        #expect(try Signature(der: signature.der) == signature)
        #expect(try key.sign(hash) == signature)
        #expect(try key.sign(hash, entropy: [UInt8](repeating: 7, count: 32)) != signature)
    }

    @Test("an s in the upper half is accepted and normalised")
    func normalized() throws {
        let key = try PrivateKey.generate()
        let hash = [UInt8](repeating: 9, count: 32)
        let low = try key.sign(hash)
        let high = try Signature(compact: Array(low.compact.prefix(32)) + Self.negated(low.compact.suffix(32)))
        #expect(high != low)
        #expect(try high.isValid(for: hash, by: key.publicKey))
        #expect(try high.normalized == low)
    }

    /// order - number
    private static func negated(_ number: some Collection<UInt8>) -> [UInt8] {
        var borrow = 0
        return Array(
            zip(order, number).reversed().map { a, b in
                let difference = Int(a) - Int(b) - borrow
                borrow = difference < 0 ? 1 : 0
                return UInt8(difference & 0xFF)
            }.reversed()
        )
    }

    @Test("DER with a needless zero byte, as a Keycard writes it, is read")
    func longNumbers() throws {
        let r = [0x7F] + [UInt8](repeating: 1, count: 31)
        let s = [0x00, 0x02] + [UInt8](repeating: 1, count: 30)
        let signature = try Signature(der: [0x30, 0x44, 0x02, 0x20] + r + [0x02, 0x20] + s)
        #expect(signature.compact == r + s)
        #expect(signature.der == [0x30, 0x43, 0x02, 0x20] + r + [0x02, 0x1F] + s.dropFirst())
    }

    @Test(
        "invalid bytes are refused as a signature",
        arguments: [
            "", "30", "3000", "3006020101020100", "3006020100020101", "300602010102010100", "3106020101020101",
            "3006020101020102 00", "300602018102 0101", "30060201010301 01", "3080 0201010201010000", "30050201010200",
        ]
    )
    func noSignature(text: String) { #expect(throws: CryptoError.self) { _ = try Signature(der: hex(text)) } }
}

private final class KeyBox {
    let key: PrivateKey
    init(_ key: consuming PrivateKey) { self.key = key }
}
