// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Crypto
import TestSupport
import Testing
import Text

@Suite("Elliptic curves", .timeLimit(.minutes(5)))
struct EllipticCurveTests {
    @Test("both parties compute the shared secret of RFC 7027 A.1 (brainpoolP256r1)")
    func diffieHellman() throws {
        let group = try Curve.brainpoolP256r1.group
        let a = try ECPrivateKey(
            Secret(hex("81DB1EE100150FF2EA338D708271BE38300CB54241D79950F77B063039804F1D")),
            on: group
        )
        let b = try ECPrivateKey(
            Secret(hex("55E40BC41E37E3E2AD25C3C6654511FFA8474A91A0032087593852D3E7D76BD3")),
            on: group
        )
        #expect(a.publicKey.compressed == hex("44106E913F92BC02A1705D9953A8414DB95E1AAA49E81D9E85F929A8E3100BE5"))
        #expect(b.publicKey.compressed == hex("8D2D688C6CF93E1160AD04CC4429117DC2C41825E1E9FCA0ADDD34E6F1B39F7B"))
        let secret = hex("89AFC39D41D3B327814B80940B042590F96556EC91E6AE7939BCE31F3A18BF2B")
        let publicA = a.publicKey
        let publicB = b.publicKey
        #expect(bytes(try a.sharedSecret(with: publicB)) == secret)
        #expect(bytes(try b.sharedSecret(with: publicA)) == secret)
    }

    @Test("two keys give the same shared secret, and encodings have the full field length", arguments: Curve.allCases)
    func agreement(curve: Curve) throws {
        let a = try ECPrivateKey(on: try curve.group)
        let b = try ECPrivateKey(on: try curve.group)
        let publicA = a.publicKey
        let publicB = b.publicKey
        let secret = bytes(try a.sharedSecret(with: publicB))
        #expect(secret == bytes(try b.sharedSecret(with: publicA)))
        #expect(secret.count == curve.fieldLength)
        #expect(publicA.uncompressed.count == 1 + 2 * curve.fieldLength)
        #expect(try ECPublicKey(publicA.uncompressed, on: curve) == publicA)
    }

    /// The value that begins with a zero byte.
    enum Part: CaseIterable { case x, y, sharedSecret }

    @Test(
        "coordinates and shared secrets keep their leading zero bytes",
        arguments: [Curve.brainpoolP256r1, .secp521r1],
        Part.allCases
    )
    func leadingZeros(curve: Curve, part: Part) throws {
        let group = try curve.group
        let peer = try ECPrivateKey(on: group)
        let peerPublic = peer.publicKey
        let length = curve.fieldLength
        // One key in 256 has a leading zero byte. The probability that none of 20 000 keys has one is below 10^-33.
        for _ in 0..<20_000 {
            let key = try ECPrivateKey(on: group)
            let point = key.publicKey
            let found =
                switch part {
                case .x: point.uncompressed[1] == 0
                case .y: point.uncompressed[1 + length] == 0
                case .sharedSecret: bytes(try key.sharedSecret(with: peerPublic)).first == 0
                }
            guard found else { continue }
            let secret = bytes(try key.sharedSecret(with: peerPublic))
            #expect(point.uncompressed.count == 1 + 2 * length)
            #expect(point.compressed.count == length)
            #expect(point.compressed == Array(point.uncompressed[1...length]))
            #expect(secret.count == length)
            #expect(bytes(try peer.sharedSecret(with: try ECPublicKey(point.uncompressed, on: curve))) == secret)
            return
        }
        Issue.record("no key with a leading zero byte was found")
    }

    @Test("anything but an uncompressed point of the curve is refused", arguments: Curve.allCases)
    func invalidPoints(curve: Curve) throws {
        let good = try ECPrivateKey(on: try curve.group).publicKey.uncompressed
        let length = curve.fieldLength
        var offCurve = good
        offCurve[2 * length] ^= 1
        var hybrid = good
        hybrid[0] = 6 | good[2 * length] & 1
        let bad: [[UInt8]] = [
            [], [0], [4], offCurve, hybrid,
            [2 | good[2 * length] & 1] + good[1...length],
            [UInt8](repeating: 0, count: good.count),
            [4] + [UInt8](repeating: 0, count: 2 * length),
            [4] + [UInt8](repeating: 0xFF, count: 2 * length),
            Array(good.dropLast()), good + [0], [4, 0] + good.dropFirst(),
        ]
        for encoding in bad {
            #expect(throws: CryptoError.invalidPoint, "\(hex(encoding))") { try ECPublicKey(encoding, on: curve) }
        }
        #expect(ERR_peek_error() == 0, "libcrypto's error queue is left empty")
    }

    @Test("key agreement with a point of another curve is refused")
    func otherCurve() throws {
        let key = try ECPrivateKey(on: try Curve.secp256r1.group)
        let peer = try ECPrivateKey(on: try Curve.brainpoolP256r1.group).publicKey
        #expect(throws: CryptoError.invalidPoint) { bytes(try key.sharedSecret(with: peer)) }
        #expect(throws: CryptoError.invalidPoint) { try ECPublicKey(peer.uncompressed, on: .secp256r1) }
    }

    @Test("a private key is a number from 1 to the order less one", arguments: Curve.allCases)
    func privateKeyRange(curve: Curve) throws {
        let group = try curve.group
        let order = try group.parameters.order
        var last = order
        last[last.count - 1] &-= 1  // the order is odd
        for scalar in [[], [0], order, [1] + order] {
            #expect(throws: CryptoError.invalidKey) { try ECPrivateKey(Secret(scalar), on: group).publicKey }
        }
        let one = try ECPrivateKey(Secret([1]), on: group).publicKey
        #expect(one.uncompressed == (try group.parameters.generator))
        // (n-1)G = -G has the same x coordinate as G.
        #expect(try ECPrivateKey(Secret(last), on: group).publicKey.compressed == one.compressed)
    }

    @Test(
        "keys on a mapped generator agree on a secret but cannot sign",
        arguments: [Curve.brainpoolP256r1, .secp224r1]
    )
    func mappedGenerator(curve: Curve) throws {
        let nonce = try Random.secret(16)
        let a = try ECPrivateKey(on: try curve.group)
        let b = try ECPrivateKey(on: try curve.group)
        let publicA = a.publicKey
        let publicB = b.publicKey
        let groupA = try curve.group.mapped(nonce: nonce, key: a, peer: publicB)
        let groupB = try curve.group.mapped(nonce: nonce, key: b, peer: publicA)
        #expect(try groupA.generatorEncoding == groupB.generatorEncoding)
        #expect(try groupA.generatorEncoding != curve.group.generatorEncoding)
        let c = try ECPrivateKey(on: groupA)
        let d = try ECPrivateKey(on: groupB)
        let publicC = c.publicKey
        let publicD = d.publicKey
        #expect(bytes(try c.sharedSecret(with: publicD)) == bytes(try d.sharedSecret(with: publicC)))
        #expect(throws: CryptoError.unsupported) { try ECDSA.sign([], with: c, digest: .sha256) }
    }
}

@Suite("Domain parameters and key files", .timeLimit(.minutes(5)))
struct DomainParameterTests {
    @Test("explicit parameters identify their curve, with or without leading zero bytes", arguments: Curve.allCases)
    func explicit(curve: Curve) throws {
        var parameters = try curve.group.parameters
        #expect(try Curve(parameters) == curve)
        parameters.prime.insert(0, at: 0)
        parameters.order.insert(0, at: 0)
        parameters.a = Array(parameters.a.drop { $0 == 0 })
        #expect(try Curve(parameters) == curve)
    }

    @Test("parameters that differ in one number are refused")
    func forged() throws {
        let good = try Curve.brainpoolP256r1.group.parameters
        let paths: [WritableKeyPath<ExplicitDomainParameters, [UInt8]>] = [
            \.prime, \.a, \.b, \.generator, \.order, \.cofactor,
        ]
        for path in paths {
            var parameters = good
            parameters[keyPath: path][parameters[keyPath: path].count - 1] ^= 1
            #expect(throws: CryptoError.unsupported) { try Curve(parameters) }
            parameters[keyPath: path] = []
            #expect(throws: CryptoError.unsupported) { try Curve(parameters) }
        }
    }

    static let scalar = "58476264B252A33BAA40BC710876F98DB07416DF112B73113EFABE39B99A2C2E"
    static let point =
        "045F7132CFA5D1B5179B4EC8A6E29AAD35951F3DD1D81635D2767119A7B60429045F71E624DF9A8980AEC7975FE8123AEED05DADB67416D8E6B4AC54116CD85A72"
    static let sec1 = "306B0201010420" + scalar + "A144034200" + point
    /// A PKCS #8 key made for this test, with a named curve.
    static let namedFile = "308188020100301406072A8648CE3D020106092B2403030208010107046D" + sec1
    /// The same key with explicit curve parameters.
    static let explicitFile =
        "308201610201003081EC06072A8648CE3D02013081E0020101302C06072A8648CE3D0101022100A9FB57DBA1EEA9BC3E660A909D838D726E3BF623D52620282013481D1F6E5377304404207D5A0975FC2C3057EEF67530417AFFE7FB8055C126DC5C6CE94A4B44F330B5D9042026DC5C6CE94A4B44F330B5D9BBD77CBF958416295CF7E1CE6BCCDC18FF8C07B60441048BD2AEB9CB7E57CB2C4B482FFC81B7AFB9DE27E1E3BD23C23A4453BD9ACE3262547EF835C3DAC4FD97F8461A14611DC9C27745132DED8E545C1D54C72F046997022100A9FB57DBA1EEA9BC3E660A909D838D718C397AA3B561A6F7901E0E82974856A7020101046D"
        + sec1

    @Test("a PKCS #8 key with a named curve or explicit parameters is read", arguments: [namedFile, explicitFile])
    func keyFile(encoding: String) throws {
        let key = try ECPrivateKey(pkcs8: Secret(hex(encoding)))
        #expect(key.group.curve == .brainpoolP256r1)
        #expect(key.publicKey.uncompressed == hex(Self.point))
        let peer = try ECPrivateKey(on: try Curve.brainpoolP256r1.group)
        let ownPublic = key.publicKey
        let peerPublic = peer.publicKey
        #expect(bytes(try key.sharedSecret(with: peerPublic)) == bytes(try peer.sharedSecret(with: ownPublic)))
    }

    @Test("a key file with explicit parameters and another generator is refused")
    func forgedGenerator() throws {
        let generator = hex(try Curve.brainpoolP256r1.group.parameters.generator)
        let forged = Self.explicitFile.replacing(generator, with: Self.point)
        #expect(forged != Self.explicitFile)
        #expect(throws: CryptoError.self) { try ECPrivateKey(pkcs8: Secret(hex(forged))).publicKey }
        #expect(ERR_peek_error() == 0)
    }

    @Test(
        "other files are refused and leave nothing in libcrypto's error queue",
        arguments: [
            ("", CryptoError.invalidKey),
            ("3000", .invalidKey),
            (namedFile + "00", .invalidKey),
            (String(namedFile.dropLast(2)), .invalidKey),
            (sec1, .invalidKey),
            // Ed25519
            (
                "302E020100300506032B6570042204204440289517523913D845524853D5692F129E6842F42CBCF51344F6A1EF5F84E7",
                .invalidKey
            ),
            // secp256k1, which is not in the table
            (
                "308184020100301006072A8648CE3D020106052B8104000A046D306B02010104205075FBDB5F1B8CCAEA2CD714C9843B51913CA7519B60FF7BB505C2EF8903921CA14403420004B7EFF304F440C61F0A481015C8CC436C1F701DFAED0E5FE76AE5EE21ACC446F8BB9CB9F9C91ABBA5ABF65A72FCDFF9795F4186D1284F324AE85E08AC748980E9",
                .unsupported
            ),
        ]
    )
    func otherFiles(encoding: String, error: CryptoError) {
        #expect(throws: error) { try ECPrivateKey(pkcs8: Secret(hex(encoding))).publicKey }
        #expect(ERR_peek_error() == 0)
    }
}
