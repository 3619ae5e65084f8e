// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import TestSupport
import Testing
import Text

@Suite("Known answers", .timeLimit(.minutes(5)))
struct KnownAnswerTests {
    @Test(
        "digests of \"abc\" match the FIPS 180-4 examples",
        arguments: [
            (.sha1, "A9993E364706816ABA3E25717850C26C9CD0D89D"),
            (.sha224, "23097D223405D8228642A477BDA255B32AADBCE4BDA0B3F7E36C9DA7"),
            (.sha256, "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"),
            (
                .sha384,
                "CB00753F45A35E8BB5A03D699AC65007272C32AB0EDED1631A8B605A43FF5BED8086072BA1E7CC2358BAECA134C825A7"
            ),
            (
                .sha512,
                "DDAF35A193617ABACC417349AE20413112E6FA4E89A97EA20A9EEEE64B55D39A2192992A274FC1A836BA3C23A3FEEBBD454D4423643CE80E2A9AC94FA54CA49F"
            ),
        ] as [(DigestAlgorithm, String)]
    )
    func digest(algorithm: DigestAlgorithm, expected: String) throws {
        #expect(try algorithm.hash(Array("abc".utf8)) == hex(expected))
        #expect(bytes(try algorithm.hash(Secret(Array("a".utf8)), suffix: Array("bc".utf8))) == hex(expected))
        #expect(hex(expected).count == algorithm.count)
    }

    @Test(
        "keys from the password 123456 are truncated SHA-1 or SHA-256 digests of the digits and 00000003",
        arguments: [
            (.aes128, "591468CDA83D65219CCCB8560233600F"),
            (.aes192, "8DF3278FB32026E66277357FCD6C826DBEB3DE32088B2531"),
            (.aes256, "8DF3278FB32026E66277357FCD6C826DBEB3DE32088B2531757D753940185923"),
        ] as [(AES, String)]
    )
    func passwordKey(cipher: AES, expected: String) throws {
        let key = try KeyDerivation.derive(.password, from: Secret(Array("123456".utf8)), for: SessionCipher(cipher))
        #expect(bytes(key) == hex(expected))
    }

    /// SP 800-38A, F.2: the first block of the CBC examples.
    static let cbcExamples: [(key: String, encrypted: String)] = [
        ("2B7E151628AED2A6ABF7158809CF4F3C", "7649ABAC8119B246CEE98E9B12E9197D"),
        ("8E73B0F7DA0E6452C810F32B809079E562F8EAD2522C6B7B", "4F021DB243BC633D7178183A9FA071E8"),
        (
            "603DEB1015CA71BE2B73AEF0857D77811F352C073B6108D72D9810A30914DFF4",
            "F58C4C04D6E5F1BA779EABFB5F7BFBD6"
        ),
    ]

    @Test("AES-CBC matches the examples in SP 800-38A", arguments: cbcExamples)
    func cbc(key: String, encrypted: String) throws {
        let key = Secret(hex(key))
        let vector = hex("000102030405060708090A0B0C0D0E0F")
        let plain = hex("6BC1BEE22E409F96E93D7E117393172A")
        #expect(try AES.encrypt(plain, key: key, initialVector: vector) == hex(encrypted))
        #expect(try AES.encrypt(Secret(plain), key: key, initialVector: vector) == hex(encrypted))
        #expect(bytes(try AES.decrypt(hex(encrypted), key: key, initialVector: vector)) == plain)
        let encryptor = try AES.Encryptor(key: key)
        // A message leaves nothing behind for the next one.
        for message in [plain, plain + plain, plain] {
            let expected = try AES.encrypt(message, key: key, initialVector: vector)
            #expect(try encryptor.encrypt(message, initialVector: vector) == expected)
        }
    }

    /// SP 800-38B, examples (and RFC 4493 for 128 bits): tags of the empty message, of 16 and of 40 bytes.
    static let cmacExamples: [(key: String, length: Int, tag: String)] = [
        ("2B7E151628AED2A6ABF7158809CF4F3C", 0, "BB1D6929E95937287FA37D129B756746"),
        ("2B7E151628AED2A6ABF7158809CF4F3C", 16, "070A16B46B4D4144F79BDD9DD04A287C"),
        ("2B7E151628AED2A6ABF7158809CF4F3C", 40, "DFA66747DE9AE63030CA32611497C827"),
        ("8E73B0F7DA0E6452C810F32B809079E562F8EAD2522C6B7B", 0, "D17DDF46ADAACDE531CAC483DE7A9367"),
        ("8E73B0F7DA0E6452C810F32B809079E562F8EAD2522C6B7B", 16, "9E99A7BF31E710900662F65E617C5184"),
        (
            "603DEB1015CA71BE2B73AEF0857D77811F352C073B6108D72D9810A30914DFF4", 0,
            "028962F61B7BF89EFC6B551F4667D983"
        ),
        (
            "603DEB1015CA71BE2B73AEF0857D77811F352C073B6108D72D9810A30914DFF4", 16,
            "28A7023F452E8F82BD4BF28D8C37C35C"
        ),
    ]

    @Test("AES-CMAC matches the examples in SP 800-38B", arguments: cmacExamples)
    func cmac(key: String, length: Int, tag: String) throws {
        let message = hex("6BC1BEE22E409F96E93D7E117393172AAE2D8A571E03AC9C9EB76FAC45AF8E5130C81C46A35CE411")
        let input = Array(message.prefix(length))
        #expect(try CMAC.tag(input, key: Secret(hex(key))) == hex(tag))
        #expect(try CMAC.truncatedTag(input, key: Secret(hex(key))) == Array(hex(tag).prefix(8)))
    }

    @Test("key and data sizes that an algorithm does not support are refused")
    func sizes() {
        let block = [UInt8](repeating: 0, count: 16)
        #expect(throws: CryptoError.invalidLength) { try AES.encrypt(block, key: Secret([1, 2, 3])) }
        #expect(throws: CryptoError.invalidLength) { try AES.encrypt([1], key: Secret(block)) }
        #expect(throws: CryptoError.invalidLength) { try AES.encrypt(block, key: Secret(block), initialVector: [0]) }
        #expect(throws: CryptoError.invalidLength) { try AES.Encryptor(key: Secret([1, 2, 3])) }
        for (data, vector) in [([1], block), (block, [0]), (block + [1], block)] {
            #expect(throws: CryptoError.invalidLength) {
                try AES.Encryptor(key: Secret(block)).encrypt(data, initialVector: vector)
            }
        }
        #expect(throws: CryptoError.invalidLength) {
            try CMAC.tag(block, key: Secret([UInt8](repeating: 1, count: 17)))
        }
        #expect(throws: CryptoError.invalidLength) { try Random.bytes(-1) }
    }

    @Test("the comparison finds a difference at every position")
    func comparison() {
        let tag: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        #expect(ConstantTime.equal(tag, tag))
        #expect(!ConstantTime.equal(tag, Array(tag.dropLast())))
        for index in tag.indices {
            var other = tag
            other[index] ^= 0x10
            #expect(!ConstantTime.equal(tag, other))
            let secretsDiffer = !ConstantTime.equal(Secret(tag), Secret(other))
            #expect(secretsDiffer)
        }
        let equalSecrets = ConstantTime.equal(Secret(tag), Secret(tag))
        #expect(equalSecrets)
        let lengthsDiffer = !ConstantTime.equal(Secret(tag), Secret(Array(tag.dropLast())))
        #expect(lengthsDiffer)
    }
}
