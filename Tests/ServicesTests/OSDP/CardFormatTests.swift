// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import OSDP

@Suite("Card numbers for panels")
struct CardFormatTests {
    /// The key of Tests/Vectors/pkoc-nfc.json ends with 5f84848b79fd463e32.
    private static let key = Hex.decode("0ec5d87dc39d14a2c5480686da860c82b16be0b6903b525f84848b79fd463e32") ?? []

    private static func card(_ change: (inout PresentedCard) -> Void = { _ in }) -> PresentedCard {
        var card = PresentedCard(.pkoc)
        card.isVerified = true
        card.key = key
        change(&card)
        return card
    }

    private static func tag(_ uid: [UInt8]) -> PresentedCard {
        var card = PresentedCard(.tag)
        card.uid = uid
        return card
    }

    private static func format(_ text: String, _ own: [String: CardFormat] = [:]) throws -> CardFormat {
        try CardFormat(words: text.split(separator: " ").map(String.init), own)
    }

    @Test(
        "a key becomes its rightmost bits, in front or at the end of the bytes",
        arguments: [
            ("key64", 64, "84848b79fd463e32"), ("pkoc64", 64, "84848b79fd463e32"),
            ("pkoc75", 75, "025f84848b79fd463e32"), ("pkoc75 left", 75, "4bf090916f3fa8c7c640"),
            ("key256", 256, "0ec5d87dc39d14a2c5480686da860c82b16be0b6903b525f84848b79fd463e32"),
            ("key1", 1, "00"), ("key12", 12, "0e32"), ("key26 left", 26, "518f8c80"),
        ]
    )
    func keys(_ format: String, _ count: Int, _ hex: String) throws {
        let number = try Self.format(format).number(of: Self.card())
        #expect(number == CardBits(count: count, bytes: Hex.decode(hex) ?? []))
    }

    @Test(
        "formats with fields have the parities of their makers",
        arguments: [
            // Facility code and number, and what is known of the format outside of badged.
            ("h10301 facility=118", 1603, "bb0321" + "80"), ("h10304 facility=1234", 56_789, "82690ddd50"),
            ("h10304 facility=65535", 524_287, "7ffffffff8"),
            ("corporate1000-35 facility=1234", 56_789, "5348377540"), ("c1k35s facility=4095", 1, "fffc000040"),
            ("corporate1000-48 facility=123456", 654_321, "41e24013f7e2"),
            ("c1k48s facility=4194303", 8_388_607, "bfffffffffff"),
        ]
    )
    func fields(_ format: String, _ number: Int, _ hex: String) throws {
        let bytes = (0..<32).map { $0 < 24 ? 0 : UInt8(truncatingIfNeeded: number >> (8 * (31 - $0))) }
        let card = Self.card { $0.key = bytes }
        #expect(Hex.encode(try Self.format(format).number(of: card).bytes) == hex)
    }

    @Test("without a facility code, both numbers are taken from the card")
    func facilityFromCard() throws {
        // 118 and 1603 are the last 24 bits.
        let card = Self.tag([0x04, 0x76, 0x06, 0x43])
        #expect(Hex.encode(try Self.format("h10301").number(of: card).bytes) == "bb032180")
        let reversed = Self.tag([0x43, 0x06, 0x76, 0x04])
        #expect(Hex.encode(try Self.format("h10301 reversed").number(of: reversed).bytes) == "bb032180")
    }

    @Test("a tag is told in both orders, and only with the length of the format")
    func tags() throws {
        let (four, seven) = (Self.tag([1, 2, 3, 4]), Self.tag([1, 2, 3, 4, 5, 6, 7]))
        #expect(try Self.format("csn32").number(of: four) == CardBits(count: 32, bytes: [1, 2, 3, 4]))
        #expect(try Self.format("csn32 reversed").number(of: four).bytes == [4, 3, 2, 1])
        #expect(try Self.format("csn56").number(of: seven).count == 56)
        #expect(try Self.format("uid reversed").number(of: seven).bytes == [7, 6, 5, 4, 3, 2, 1])
        #expect(throws: Malformed("its number has another length")) { try Self.format("csn32").number(of: seven) }
        #expect(throws: Malformed("it has shown no key")) { try Self.format("key64").number(of: four) }
        var random = four
        random.isRandom = true
        #expect(throws: Malformed("its number is another one at each tap")) {
            try Self.format("csn32").number(of: random)
        }
    }

    @Test("what a reader in the wall has read goes on unchanged")
    func raw() throws {
        var card = PresentedCard(.raw)
        card.raw = CardBits(count: 75, bytes: [0x02, 0x5F, 1, 2, 3, 4, 5, 6, 7, 8])
        #expect(try Self.format("raw").number(of: card) == card.raw)
    }

    @Test("a format of one's own has fields, fixed bits and parities by mask")
    func own() throws {
        let fields = try CardFields("P1 B10 C5 P1", parities: "even:FE odd:7E")
        let own = ["mine": CardFormat(.fields(fields))]
        // 1 10 10010 1: the first parity counts the bits 2 to 8, the last one the bits 3 to 8.
        let number = try Self.format("mine", own).number(of: Self.tag([0x12]))
        #expect(number == CardBits(count: 9, bytes: [0b1101_0010, 0b1000_0000]))
    }

    @Test(
        "a format that makes no sense is refused",
        arguments: [
            ("", ""), ("F8", ""), ("C0", ""), ("C257", ""), ("C200 F57", ""), ("P2 C8", "even:1"), ("P1 C8", ""),
            ("C8 C8", ""), ("F8 F8 C8", ""), ("B C8", ""), ("B2 C8", ""), ("X1 C8", ""), ("C8", "even:1"),
            ("P1 C8", "even:1FF"), ("P1 C8", "even:2FF"), ("P1 C8", "even:"), ("P1 C8", "even:XY"), ("P1 C8", "even"),
            ("P1 P1 C8", "even:100 odd:200"),
        ]
    )
    func wrongFields(_ fields: String, _ parities: String) {
        #expect(throws: Malformed.self) { try CardFields(fields, parities: parities) }
    }

    @Test(
        "a facility code that does not fit is refused",
        arguments: ["h10301 facility=256", "key64 facility=1", "uid facility=0", "h10301 facility=-1", "h10301 upside"]
    )
    func wrongFacility(_ text: String) {
        #expect(throws: Malformed.self) { try Self.format(text) }
    }

    private static let four = tag([1, 2, 3, 4])

    @Test("the first rule that fits decides")
    func rules() throws {
        let rules = try [
            "pkoc listed -> key75", "aliro -> none", "tag length=4 panel=hall -> csn32", "any -> key64",
        ].map { try CardRule($0) }
        func told(_ card: PresentedCard, _ panel: String = "front") -> String {
            do throws(Malformed) {
                return "\(try CardRule.number(of: card, for: panel, rules).count)"
            } catch {
                return error.text
            }
        }
        #expect(told(Self.card { $0.isListed = true }) == "75")
        #expect(told(Self.card()) == "64")
        #expect(told(Self.card { $0.kind = .aliro }) == "a rule refuses it")
        #expect(told(Self.four) == "no rule names it")
        #expect(told(Self.four, "hall") == "32")
        #expect(told(Self.tag([1, 2, 3, 4, 5, 6, 7]), "hall") == "no rule names it")
    }

    @Test("without rules, only keys that were proven are told")
    func standard() throws {
        #expect(try CardRule.number(of: Self.card(), for: "front", CardRule.standard).count == 64)
        #expect(throws: Malformed("no rule names it")) {
            try CardRule.number(of: Self.four, for: "front", CardRule.standard)
        }
        #expect(throws: Malformed("no rule names it")) {
            try CardRule.number(of: Self.card { $0.isVerified = false }, for: "front", CardRule.standard)
        }
        var failed = PresentedCard(.pkoc)
        failed.reason = "wrongSignature"
        #expect(throws: Malformed("it has shown no credential: wrongSignature")) {
            try CardRule.number(of: failed, for: "front", try [CardRule("any unverified -> key64")])
        }
    }

    @Test(
        "a rule that makes no sense is refused",
        arguments: [
            "", "->", "any", "any ->", "-> key64", "any -> key0", "any -> key257", "any -> nothing", "card -> key64",
            "pkoc tag -> key64", "length=0 -> key64", "length=x -> key64", "panel= -> key64", "any -> none left",
        ]
    )
    func wrongRules(_ text: String) {
        #expect(throws: Malformed.self) { try CardRule(text) }
    }
}
