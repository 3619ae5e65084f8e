// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import TestSupport
import Testing
import Text

@Suite("RSA signatures", .timeLimit(.minutes(5)))
struct RSATests {
    @Test("a signature with PKCS#1 v1.5 is valid for its message, digest and key only")
    func signature() throws {
        let vector = try vectorFile("pkoc-rsa.json")
        let (message, signature) = (try vector.bytes("signed"), try vector.bytes("signature"))
        let modulus = try vector.bytes("modulus")
        let key = try RSAPublicKey(modulus: [0, 0] + modulus, exponent: [0, 1, 0, 1])
        #expect(key.modulus == modulus && key.exponent == [1, 0, 1])
        #expect(try key.verify(signature, of: message, digest: .sha256))
        #expect(try !key.verify(signature, of: message + [0], digest: .sha256))
        #expect(try !key.verify(signature, of: message, digest: .sha512))
        for changed in [signature.dropLast(), [0] + signature, [], signature.map { $0 ^ 1 }] {
            #expect(try !key.verify(Array(changed), of: message, digest: .sha256))
        }
        #expect(try !RSAPublicKey(modulus: modulus, exponent: [3]).verify(signature, of: message, digest: .sha256))
    }

    @Test(
        "a key that is short, long or even, or has another exponent, is refused",
        arguments: [(255, [3]), (513, [3]), (256, [2]), (256, [1]), (256, []), (256, [1, 0, 0, 0, 1])]
            as [(Int, [UInt8])]
    )
    func wrongKey(length: Int, exponent: [UInt8]) {
        let modulus = [UInt8](repeating: 0xFF, count: length)
        #expect(throws: CryptoError.invalidKey) { try RSAPublicKey(modulus: modulus, exponent: exponent) }
        #expect(throws: CryptoError.invalidKey) { try RSAPublicKey(modulus: modulus + [0], exponent: [3]) }
    }
}
