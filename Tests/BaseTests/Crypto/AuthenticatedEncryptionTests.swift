// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import TestSupport
import Testing
import Text

@Suite("Known answers of authenticated encryption and key derivation")
struct AuthenticatedEncryptionTests {
    @Test("AES-CCM matches example 1 of SP 800-38C")
    func ccm() throws {
        let key = Secret(hex("404142434445464748494A4B4C4D4E4F"))
        let (nonce, header) = (hex("10111213141516"), hex("0001020304050607"))
        let cipher = AuthenticatedAES.ccm(tagCount: 4)
        let sealed = try cipher.seal(Secret(hex("20212223")), key: key, nonce: nonce, authenticating: header)
        #expect(hex(sealed) == "7162015B4DAC255D")
        let opened = try cipher.open(sealed, key: key, nonce: nonce, authenticating: header)
        #expect(opened?.withBytes { Array($0) } == hex("20212223"))
    }

    @Test("AES-GCM matches test case 16 of its specification")
    func gcm() throws {
        let key = Secret(hex("FEFFE9928665731C6D6A8F9467308308 FEFFE9928665731C6D6A8F9467308308"))
        let nonce = hex("CAFEBABEFACEDBADDECAF888")
        let header = hex("FEEDFACEDEADBEEFFEEDFACEDEADBEEFABADDAD2")
        let plain = hex(
            """
            D9313225F88406E5A55909C5AFF5269A86A7A9531534F7DA2E4C303D8A318A721C3C0C95956809532FCF0E2449A6B525
            B16AEDF5AA0DE657BA637B39
            """
        )
        let sealed = try AuthenticatedAES.gcm.seal(Secret(plain), key: key, nonce: nonce, authenticating: header)
        #expect(
            sealed
                == hex(
                    """
                    522DC1F099567D07F47F37A32A84427D643A8CDCBFE5C0C97598A2BD2555D1AA8CB08E48590DBB3DA7B08B1056828838
                    C5F61E6393BA7A0ABCC9F662 76FC6ECE0F4E1768CDDF8853BB2D551B
                    """
                )
        )
        let opened = try AuthenticatedAES.gcm.open(sealed, key: key, nonce: nonce, authenticating: header)
        #expect(opened?.withBytes { Array($0) } == plain)
    }

    @Test(
        "decryption fails with a changed byte, tag, header, nonce or key",
        arguments: [.gcm, .ccm(tagCount: 8)] as [AuthenticatedAES]
    )
    func forged(cipher: AuthenticatedAES) throws {
        let key = Secret([UInt8](repeating: 1, count: 16))
        let nonce = [UInt8](repeating: 2, count: 12)
        let sealed = try cipher.seal(Secret([1, 2, 3]), key: key, nonce: nonce, authenticating: [9])
        func opens(_ sealed: [UInt8], _ key: borrowing Secret, _ nonce: [UInt8], _ header: [UInt8]) throws -> Bool {
            try cipher.open(sealed, key: key, nonce: nonce, authenticating: header) != nil
        }
        #expect(try opens(sealed, key, nonce, [9]))
        for other in changed(sealed) { #expect(try !opens(other, key, nonce, [9])) }
        #expect(try !opens(sealed, key, nonce, [8]))
        #expect(try !opens(sealed, key, nonce.map { $0 + 1 }, [9]))
        #expect(try !opens(sealed, Secret([UInt8](repeating: 3, count: 16)), nonce, [9]))
        #expect(try !opens(Array(sealed.dropFirst(3)), key, nonce, [9]))
        #expect(try !opens([], key, nonce, [9]))
    }

    @Test("HMAC-SHA512 matches test case 2 of RFC 4231")
    func hmac() throws {
        let tag = try DigestAlgorithm.sha512.hmac(Secret("what do ya want for nothing?".utf8), key: Secret("Jefe".utf8))
        #expect(
            bytes(tag)
                == hex(
                    """
                    164B7A7BFCF819E2E395FBE73B56E0A387BD64222E831FD610270CD7EA2505549758BF75C05A994A6D034F65F8F0E6FD
                    CAEAB1A34D4A6B4B636E070A38BCE737
                    """
                )
        )
    }

    @Test("HKDF-SHA256 matches test case 1 of RFC 5869")
    func hkdf() throws {
        let key = try DigestAlgorithm.sha256.hkdf(
            Secret([UInt8](repeating: 0x0B, count: 22)),
            salt: hex("000102030405060708090A0B0C"),
            info: hex("F0F1F2F3F4F5F6F7F8F9"),
            count: 42
        )
        #expect(
            bytes(key)
                == hex("3CB25F25FAACD57A90434F64D0362F2A2D2D0A90CF1A5A4C5DB02D56ECC4C5BF34007208D5B887185865")
        )
    }

    @Test("PBKDF2 with HMAC-SHA256 matches RFC 7914, section 11")
    func pbkdf2() throws {
        let key = try DigestAlgorithm.sha256.pbkdf2(
            Secret("passwd".utf8),
            salt: Secret("salt".utf8),
            iterations: 1,
            count: 64
        )
        #expect(
            bytes(key)
                == hex(
                    """
                    55AC046E56E3089FEC1691C22544B605F94185216DDE0465E68B9D57C20DACBC49CA9CCCF179B645991664B39D77EF31
                    7C71B845B1E30BD509112041D3A19783
                    """
                )
        )
    }

    @Test(
        "Keccak-256 has its known hashes, also where the padding is one byte or a whole block",
        arguments: [
            ("", "C5D2460186F7233C927E7DB2DCC703C0E500B653CA82273B7BFAD8045D85A470"),
            ("abc", "4E03657AEA45A94FC7D47BA826C8D667C0D1E6E33A64A036EC44F58FA12D6C45"),
            (
                "The quick brown fox jumps over the lazy dog",
                "4D741B6F1EB29CB2A9B9911C82F56FA8D73B04959D3D9D222895DF6C0B28AA15"
            ),
        ]
    )
    func keccak(text: String, expected: String) { #expect(hex(Keccak256.hash(text.utf8)) == expected) }

    @Test(
        "Keccak-256 of the bytes 00, 01, ... matches another implementation",
        arguments: [
            (135, "CBDFD9DEE5FAAD3818D6B06F95A219FD290B0E1706F6A82E5A595B9CE9FACA62"),
            (136, "7CE759F1AB7F9CE437719970C26B0A66FF11FE3E38E17DF89CF5D29C7D7F807E"),
            (137, "AC73D4FAE68B8453F764007C1A20CE95994187861F0C3227A3A8E99A73A3B1DB"),
            (272, "FDF2EC49E749960D3C8521A0219AF8D03E30E2B3BF19BD16150EE0EAF133D66E"),
            (1000, "ACA79E4146E30EB1C733F6D6060D72471C36EA4E01EBF45D7F4916249C2BBD82"),
        ]
    )
    func longKeccak(count: Int, expected: String) {
        #expect(hex(Keccak256.hash((0..<count).map { UInt8(truncatingIfNeeded: $0) })) == expected)
    }
}
