// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Crypto
import TestSupport
import Testing
import Text

@Suite("ECDSA", .timeLimit(.minutes(5)))
struct ECDSATests {
    @Test("the RFC 6979 A.2.5 signature (P-256, SHA-256, \"sample\") is valid in plain format and in DER")
    func knownSignature() throws {
        let key = try ECPublicKey(
            hex(
                """
                0460FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6
                7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299
                """
            ),
            on: .secp256r1
        )
        let signature = hex(
            """
            EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716
            F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8
            """
        )
        let message = Array("sample".utf8)
        #expect(try ECDSA.verify(signature, of: message, with: key, digest: .sha256))
        let der = try #require(try ECDSA.derSignature(fromPlain: signature, curve: .secp256r1))
        #expect(try ECDSA.verify(der: der, of: message, with: key, digest: .sha256))
        #expect(try ECDSA.plainSignature(fromDER: der, curve: .secp256r1) == signature)
        #expect(try !ECDSA.verify(signature, of: Array("Sample".utf8), with: key, digest: .sha256))
        #expect(try !ECDSA.verify(signature, of: message, with: key, digest: .sha512))
    }

    @Test("a signature is valid only for the signed data and key, on every curve", arguments: Curve.allCases)
    func roundTrip(curve: Curve) throws {
        let key = try ECPrivateKey(on: try curve.group)
        let publicKey = key.publicKey
        let message = Array("An example.".utf8)
        for digest in DigestAlgorithm.allCases {
            let plain = try ECDSA.sign(message, with: key, digest: digest)
            #expect(plain.count == 2 * curve.scalarLength)
            #expect(try ECDSA.verify(plain, of: message, with: publicKey, digest: digest))
            let der = try ECDSA.signDER(message, with: key, digest: digest)
            #expect(try ECDSA.verify(der: der, of: message, with: publicKey, digest: digest))
        }
        let other = try ECPrivateKey(on: try curve.group).publicKey
        let plain = try ECDSA.sign(message, with: key, digest: .sha256)
        #expect(try !ECDSA.verify(plain, of: message, with: other, digest: .sha256))
        #expect(ERR_peek_error() == 0, "a wrong signature leaves libcrypto's error queue empty")
    }

    @Test("a signature with one changed bit is invalid")
    func tampered() throws {
        let key = try ECPrivateKey(on: try Curve.brainpoolP256r1.group)
        let publicKey = key.publicKey
        let plain = try ECDSA.sign([1, 2, 3], with: key, digest: .sha256)
        for index in plain.indices {
            var changed = plain
            changed[index] ^= 0x40
            #expect(try !ECDSA.verify(changed, of: [1, 2, 3], with: publicKey, digest: .sha256))
        }
    }

    @Test("malformed signatures are invalid and cause no error")
    func malformed() throws {
        let curve = Curve.brainpoolP256r1
        let key = try ECPrivateKey(on: try curve.group)
        let publicKey = key.publicKey
        let zero = [UInt8](repeating: 0, count: 32)
        let order = try curve.group.parameters.order
        let good = try ECDSA.sign([], with: key, digest: .sha256)
        let bad: [[UInt8]] = [
            [], Array(good.dropLast()), good + [0], zero + zero, order + order, zero + good.suffix(32),
            good.prefix(32) + zero,
        ]
        for signature in bad {
            #expect(try !ECDSA.verify(signature, of: [], with: publicKey, digest: .sha256))
        }
        let der = try ECDSA.signDER([], with: key, digest: .sha256)
        for signature in [[], [0x30], Array(der.dropLast()), der + [0], hex("3006020100020100")] {
            #expect(try !ECDSA.verify(der: signature, of: [], with: publicKey, digest: .sha256))
        }
        for signature in [[], [0x30], Array(der.dropLast()), der + [0]] {
            #expect(throws: CryptoError.invalidLength) { try ECDSA.plainSignature(fromDER: signature, curve: curve) }
        }
        let long = try ECPrivateKey(on: try Curve.brainpoolP512r1.group)
        let longDER = try ECDSA.signDER([], with: long, digest: .sha512)
        #expect(throws: CryptoError.invalidLength) { try ECDSA.plainSignature(fromDER: longDER, curve: curve) }
        #expect(ERR_peek_error() == 0)
    }

    @Test("r and s in a plain signature keep their leading zero bytes")
    func leadingZeros() throws {
        let curve = Curve.secp256r1
        let key = try ECPrivateKey(on: try curve.group)
        let publicKey = key.publicKey
        for number in 0..<20_000 {
            let message = [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
            let der = try ECDSA.signDER(message, with: key, digest: .sha256)
            guard der[3] < 32 else { continue }  // length of r
            let plain = try ECDSA.plainSignature(fromDER: der, curve: curve)
            #expect(plain.count == 64)
            #expect(plain[0] == 0)
            #expect(try ECDSA.verify(plain, of: message, with: publicKey, digest: .sha256))
            return
        }
        Issue.record("no signature with a leading zero byte was found")
    }
}
