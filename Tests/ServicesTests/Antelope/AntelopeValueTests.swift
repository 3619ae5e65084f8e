// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import TestSupport
import Testing
import Text

@testable import Antelope

@Suite("Names, amounts, keys and times as text", .timeLimit(.minutes(5)))
struct ValueTests {
    @Test(
        "a name is packed as nodes do, and read back",
        arguments: [
            ("eosio.token", 0x5530_EA03_3482_A600 as UInt64), ("", 0), ("a", 0x3000_0000_0000_0000),
            ("zzzzzzzzzzzzj", .max), ("ab.cd.ef.1234", 0x31C1_0C81_4A01_0864),
        ]
    )
    func name(text: String, value: UInt64) throws {
        if text != "ab.cd.ef.1234" { #expect(try AccountName(text).value == value) }
        #expect(try AccountName(text).description == text)
    }

    @Test(
        "an invalid name is refused",
        arguments: ["Alice", "alice0", "alice.", "a b", "zzzzzzzzzzzzk", "zzzzzzzzzzzzzz", "al\u{0}ce", "älice", "-"]
    )
    func badName(text: String) { #expect(throws: Malformed.self) { try AccountName(text) } }

    @Test(
        "an amount is read and written with its decimals",
        arguments: [
            ("1.0000 EOS", 10_000 as Int64, 4), ("-0.5 A", -5, 1), ("0 WAX", 0, 0),
            ("4611686018427387903 BIG", 4_611_686_018_427_387_903, 0),
            ("0.000000000000000001 TINY", 1, 18),
        ]
    )
    func asset(text: String, amount: Int64, precision: Int) throws {
        let asset = try Asset(text)
        #expect((asset.amount, asset.symbol.precision) == (amount, precision))
        #expect(asset.description == text)
    }

    @Test(
        "an invalid amount is refused",
        arguments: [
            "1.0000", "1.0000EOS", "1.0000  EOS", "1. EOS", ".5 EOS", "1,5 EOS", "1.0 eos", "1.0 TOOLONGS", "1e3 EOS",
            "4611686018427387904 BIG", "9999999999999999999 BIG", "99999999999999999999999 BIG",
            "0.0000000000000000001 TINY", "+1 EOS", "--1 EOS", " 1 EOS", "1.2.3 EOS", "1.0000 EOS ", "",
        ]
    )
    func badAsset(text: String) { #expect(throws: Malformed.self) { try Asset(text) } }

    @Test("missing decimals are added, and too many are refused")
    func padding() throws {
        let eos = try SymbolCode("EOS")
        #expect(try Asset(decimal: "1.31", code: eos, precision: 4).description == "1.3100 EOS")
        #expect(try Asset(decimal: "7", code: eos, precision: 4).description == "7.0000 EOS")
        #expect(throws: Malformed.self) { try Asset(decimal: "1.31234", code: eos, precision: 4) }
    }

    @Test("keys have the texts of eosjs, in the new and in the legacy form")
    func keys() throws {
        let eosjs = try #require(try vectorFile("antelope-chain.json")["eosjs"])
        let (legacy, k1) = (try eosjs.texts("legacy"), try eosjs.texts("k1"))
        for (old, new) in zip(legacy, k1) {
            let key = try KeyText(old, .publicKey)
            #expect(key == (try KeyText(new, .publicKey)))
            #expect((key.description, key.legacy) == (new, old))
            #expect(throws: Never.self) { try PublicKey(key.content) }
        }
        for text in try eosjs.texts("r1") {
            #expect(try KeyText(text, .publicKey).description == text)
        }
        for text in try eosjs.texts("signatures") {
            let signature = try KeyText(text, .signature)
            #expect(signature.description == text)
        }
    }

    @Test(
        "an invalid key is refused",
        arguments: [
            "", "EOS", "EOS0", "PUB_K1_", "PUB_K1_7tgwU6E7pAUQJgqEJt66Yi8cWvanTUW8ZfBjeXeJBQvhYTBFvZ",
            "PUB_XX_7tgwU6E7pAUQJgqEJt66Yi8cWvanTUW8ZfBjeXeJBQvhYTBFvY",
            "EOS7tgwU6E7pAUQJgqEJt66Yi8cWvanTUW8ZfBjeXeJBQvhTU9ypj",
            "SIG_K1_HKkqi3zray76i63ZQwAHWMjoLk3wTa1ajZWPcUnrhgmSWQYEHDJsxkny6VDTWEmVdfktxpGoTA81qe6QuCrDmazeQndmxh",
            "PUB_R1_7tgwU6E7pAUQJgqEJt66Yi8cWvanTUW8ZfBjeXeJBQvhYTBFvY", "PUB_K1_" + String(repeating: "1", count: 100),
        ]
    )
    func badKey(text: String) { #expect(throws: Malformed.self) { try KeyText(text, .publicKey) } }

    @Test(
        "times are read and written",
        arguments: [
            ("1970-01-01T00:00:00.000000", 0 as Int64), ("2000-02-29T23:59:59.999999", 951_868_799_999_999),
            ("2026-11-22T17:30:00.500000", 1_795_368_600_500_000),
            ("2100-03-01T00:00:00.000000", 4_107_542_400_000_000),
        ]
    )
    func time(text: String, microseconds: Int64) throws {
        #expect(try AntelopeTime(text).microseconds == microseconds)
        #expect(AntelopeTime(microseconds: microseconds).text(decimals: 6) == text)
    }

    @Test(
        "an invalid time is refused",
        arguments: [
            "", "2026-02-29T00:00:00", "2026-13-01T00:00:00", "2026-00-01T00:00:00", "2026-01-01T24:00:00",
            "2026-01-01 00:00:00", "2026-01-01T00:00:00.", "2026-01-01T00:00:00+01:00", "1969-12-31T23:59:59",
            "2026-01-01T00:00", "20260101T000000", "2026-01-01T00:00:00.0000000000",
        ]
    )
    func badTime(text: String) { #expect(throws: Malformed.self) { try AntelopeTime(text) } }
}
