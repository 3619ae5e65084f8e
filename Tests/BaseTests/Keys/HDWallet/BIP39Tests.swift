// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import TestSupport
import Testing
import Text

@Suite("Words of BIP-39")
struct BIP39Tests {
    struct File: Decodable {
        struct Vector: Decodable {
            let entropy: String
            let words: String
            let seed: String
        }
        let vectors: [Vector]
    }

    @Test("the list is the file of BIP-39")
    func list() throws {
        #expect(
            hex(try DigestAlgorithm.sha256.hash(WordList.file))
                == "2F5EED53A4727B4BF8880D8F3F199EFC90E58503646D9FF8EFF3A2ED3B24DBDA"
        )
        #expect(WordList.words.count == WordList.count)
    }

    @Test("the published vectors hold: entropy, words and seed")
    func published() throws {
        let all = try vectors("bip39.json", as: File.self).vectors
        #expect(all.count == 24)
        for vector in all {
            let made = try Mnemonic(entropy: Secret(hex(vector.entropy)))
            #expect(bytes(made.words) == Array(vector.words.utf8))
            let typed = try Mnemonic(words: Secret("  \(vector.words.uppercased())\n".utf8))
            #expect(bytes(typed.indexes) == bytes(made.indexes))
            #expect(bytes(try typed.seed(passphrase: Secret("TREZOR".utf8))) == hex(vector.seed))
        }
    }

    @Test(
        "wrong words are refused, and the error names the place only",
        arguments: [
            ("", wrongCount),
            ("abandon", wrongCount),
            (
                "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon",
                wrongCount
            ),
            (
                "abandon abandon abandon abandn abandon abandon abandon abandon abandon abandon abandon about",
                "word 4 is not in the list"
            ),
            (
                "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon zzzz",
                "word 12 is not in the list"
            ),
            (
                "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon",
                wrongChecksum
            ),
            (
                "about abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon",
                wrongChecksum
            ),
        ]
    )
    func wrongWords(text: String, expected: String) {
        #expect(throws: Malformed(expected)) { _ = try Mnemonic(words: Secret(text.utf8)) }
    }

    private static let wrongCount = "there are not 12, 15, 18, 21 or 24 words"
    private static let wrongChecksum = "the checksum of the words is wrong"

    @Test("indexes above the list are refused")
    func wrongIndex() {
        #expect(throws: Malformed("word 1 is not in the list")) {
            _ = try Mnemonic(indexes: Secret([0x08, 0x00] + [UInt8](repeating: 0, count: 22)))
        }
        #expect(throws: Malformed(Self.wrongCount)) {
            _ = try Mnemonic(indexes: Secret([UInt8](repeating: 0, count: 23)))
        }
    }

    @Test("single words are read by their position")
    func word() throws {
        let words = try Mnemonic(entropy: Secret([UInt8](repeating: 0, count: 16)))
        #expect(words.count == 12)
        #expect(words.word(at: 11) == Array("about".utf8))
        #expect(words.word(at: 12) == nil)
        #expect(words.word(at: -1) == nil)
    }

    private static let typed = "legal winner thank year wave sausage worth useful legal winner thank yellow"

    @Test(
        "words may be typed with four letters, with commas and with their numbers",
        arguments: [
            "lega winn than year wave saus wort usef lega winn than yell",
            "LEGAL, winner,thank ,year , wave,sausage worth useful legal winner thank yellow",
            "1 legal 2 winner 3 thank 4 year 5 wave 6 sausage 7 worth 8 useful 9 legal 10 winner 11 thank 12 yellow",
            "1. legal 2. winn 3. thank 4. year 5. wave 6. sausage 7. worth 8. useful 9. lega 10. winner 11. thank 12. yell",
            "1.legal 2)winner, 3:thank 4.year 5.wave 6.sausage 7.worth 8.useful 9.legal 10.winner 11.thank 12.yellow",
            "legal winner thank year wave sausa worth useful legal winner thank yellow",
        ]
    )
    func typing(text: String) throws {
        let words = try Mnemonic(words: Secret(text.utf8)).words
        let isSame = words.withBytes { $0.elementsEqual(Self.typed.utf8) }
        let count = Mnemonic.count(of: Secret(text.utf8))
        #expect(isSame && count == 12)
    }

    @Test(
        "what is no word is none: three letters, a wrong end, a number in the wrong place",
        arguments: [
            "leg winner thank year wave sausage worth useful legal winner thank yellow",
            "legalx winner thank year wave sausage worth useful legal winner thank yellow",
            "legxl winner thank year wave sausage worth useful legal winner thank yellow",
            "2 legal 1 winner 3 thank 4 year 5 wave 6 sausage 7 worth 8 useful 9 legal 10 winner 11 thank 12 yellow",
            "1 2 legal winner thank year wave sausage worth useful legal winner thank yellow",
            "1 2 3 4 5 6 7 8 9 10 11 12",
        ]
    )
    func noWords(text: String) {
        #expect(throws: Malformed.self) { _ = try Mnemonic(words: Secret(text.utf8)) }
    }

    @Test("each first four letters begin one word of the list")
    func fourLetters() {
        #expect(Set(WordList.words.map { $0.prefix(4) }).count == WordList.count)
    }

    @Test("the words that are asked back may have their numbers, and no others")
    func askedBack() throws {
        let mnemonic = try Mnemonic(words: Secret(Self.typed.utf8))
        for text in ["thank worth yellow", "than wort yell", "3 thank 7. worth, 12)yellow", " Thank,WORTH yellow "] {
            let matches = mnemonic.matches(Secret(text.utf8), at: [3, 7, 12])
            #expect(matches, "\(text)")
        }
        for text in [
            "", "thank worth", "thank worth yello w", "1 thank 2 worth 3 yellow", "worth thank yellow",
            "tha worth yellow",
        ] {
            let matches = mnemonic.matches(Secret(text.utf8), at: [3, 7, 12])
            #expect(!matches, "\(text)")
        }
    }
}
