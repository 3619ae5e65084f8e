// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import TestSupport
import Testing
import Text

@testable import Antelope

@Suite("Transactions and signatures", .timeLimit(.minutes(5)))
struct TransactionTests {
    private static func token() throws -> ABI {
        let file = try vectorFile("antelope-abieos.json")
        return try ABI(packed: try hex(file["packedABIs"]?["token"]))
    }

    @Test("transactions of real blocks: packed again, their ids, their transfers, their signatures")
    func realBlocks() throws {
        let token = try Self.token()
        let all = try vectorFile("antelope-chain.json").list("transactions")
        #expect(all.count == 7)
        for vector in all {
            let packed = try hex(vector["packed"])
            let transaction = try Transaction(packed: packed)
            #expect(transaction.packed == packed)
            #expect(try Transaction.id(of: packed) == hex(vector["id"]))
            for text in try vector.texts("signatures") {
                let parsed = try KeyText(text, .signature)
                let signature = try #require(CompactSignature(parsed))
                #expect(signature.isCanonical)
                #expect(signature.text.description == text)
            }
            for transfer in try vector.list("transfers") {
                let (json, data) = (try #require(transfer["json"]), try hex(transfer["hex"]))
                #expect(try token.pack(json, as: "transfer") == data)
                #expect(try token.unpack(data, as: "transfer") == json)
                #expect(transaction.actions.contains { $0.data == data && "\($0.account)" == "eosio.token" })
            }
        }
    }

    @Test("each change of what is shown of a transaction changes the digest, or cannot be packed")
    func nothingHidden() throws {
        let types =
            #"{"version":"eosio::abi/1.1","types":[{"new_type_name":"parts","type":"part[]"}],"#
            + #""structs":[{"name":"base","base":"","fields":[{"name":"by","type":"name"}]},"#
            + #"{"name":"do","base":"base","fields":[{"name":"quantity","type":"asset"},{"name":"memo","type":"string"},"#
            + #"{"name":"parts","type":"parts"},{"name":"maybe","type":"uint8?"},{"name":"one","type":"either"},"#
            + #"{"name":"flag","type":"bool"},{"name":"data","type":"bytes"},{"name":"at","type":"time_point_sec"}]},"#
            + #"{"name":"part","base":"","fields":[{"name":"K","type":"int64"}]}],"#
            + #""actions":[{"name":"do","type":"do","ricardian_contract":""}],"#
            + #""variants":[{"name":"either","types":["uint8","string"]}]}"#
        let abi = try ABI(try JSON(types.utf8))
        let data = try JSON(
            (#"{"by":"alice","quantity":"1.0000 EOS","memo":"m","parts":[{"K":"5"},{"K":-1}],"maybe":3,"#
                + #""one":["string","s"],"flag":true,"data":"0102","at":"2026-11-22T10:00:00"}"#).utf8
        )
        func digest(
            _ data: JSON,
            account: String = "shop",
            name: String = "do",
            by: String = "alice@active",
            expiration: UInt32 = 1_800_000_000,
            block: UInt16 = 1,
            chain: ChainID = .eos
        ) throws -> [UInt8] {
            let level = by.split(separator: "@").map(String.init)
            let action = AntelopeAction(
                account: try AccountName(account),
                name: try AccountName(name),
                authorization: [
                    PermissionLevel(actor: try AccountName(level[0]), permission: try AccountName(level[1]))
                ],
                data: try abi.pack(data, as: "do")
            )
            let reference = BlockReference(number: block, prefix: 5)
            let packed = Transaction(expiration: expiration, reference: reference, actions: [action]).packed
            return try Transaction.digest(of: packed, on: chain)
        }
        let first = try digest(data)
        let changes = data.changes()
        #expect(changes.count > 60)
        for (place, changed) in changes { #expect((try? digest(changed)) != first, "\(place)") }
        let kelvin = String(decoding: data.bytes, as: UTF8.self).replacing(#""K""#, with: #""\u212A""#)
        let shown = try abi.unpack(abi.pack(try JSON(kelvin.utf8), as: "do"), as: "do").bytes
        #expect(!shown.contains(0xE2), "the field has the name of the ABI")
        let other = try #require(ChainID([UInt8](repeating: 1, count: 32)))
        let others = try [
            digest(data, account: "shop2"), digest(data, name: "do2"), digest(data, by: "bob@active"),
            digest(data, by: "alice@owner"), digest(data, expiration: 1_800_000_001), digest(data, block: 2),
            digest(data, chain: other),
        ]
        #expect(Set(others + [first]).count == 8)
    }

    @Test("the signatures of a card have the expected text, key and canonical form")
    func card() throws {
        let file = try vectorFile("antelope-card.json")
        let digest = try DigestAlgorithm.sha256.hash(Array(try file.text("message").utf8))
        #expect(digest == (try hex(file["message_digest"])))
        let key = try PublicKey(try hex(file["public_compressed"]))
        #expect(KeyText(key).description == file["pub_k1"]?.string)
        #expect(KeyText(key).legacy == file["pub_eos"]?.string)
        for vector in try file.list("card_signatures") {
            let made = try Signature(der: try hex(vector["der"]))
            let id = try #require(try made.recoveryID(for: digest, by: key))
            let signature = CompactSignature(made, recoveryID: id)
            #expect(signature.bytes == (try hex(vector["compact65"])))
            #expect(signature.isCanonical == vector["canonical"]?.bool)
            #expect(signature.text.description == vector["sig_k1"]?.string)
            #expect(try signature.recover(digest) == key)
        }
    }

    @Test("a transaction is packed, and its id and digest are computed")
    func packing() throws {
        let file = try vectorFile("antelope-card.json")
        let packed = try hex(file["packed_transaction"])
        let transaction = try Transaction(packed: packed)
        let level = PermissionLevel(actor: try AccountName("thegazelle"), permission: try AccountName("active"))
        #expect(transaction.actions.first?.authorization == [level])
        #expect(transaction.packed == packed)
        #expect(try Transaction.id(of: packed) == hex(file["transaction_id"]))
        let bytes = try hex(file["chain_id"])
        let chain = try #require(ChainID(bytes))
        #expect(chain.description == file["chain_id"]?.string)
        #expect(chain == .eos)
        #expect(try Transaction.digest(of: packed, on: chain) == hex(file["signing_digest"]))
        let token = try Self.token()
        let data = try hex(file["transfer_data"])
        #expect(transaction.actions.first?.data == data)
        #expect(
            try token.unpack(data, as: "transfer")
                == JSON(
                    #"{"from":"thegazelle","to":"remasteryoda","quantity":"1.0000 EOS","memo":"For a secure future."}"#
                        .utf8
                )
        )
    }

    @Test("the reference to a block is its number and four bytes of its id")
    func reference() throws {
        let id = try #require(Hex.decode("0584738b07e94f3ad25bba11d2a76b9c1f12fc2dda3e0f4d8b5ed7c0a1f4b2c3"))
        #expect(BlockReference(blockID: id) == BlockReference(number: 0x738B, prefix: 0x11BA_5BD2))
        #expect(BlockReference(blockID: Array(id.dropLast())) == nil)
    }

    @Test(
        "a transaction with a delay, limits, extensions or other bytes is refused",
        arguments: [
            "", "00", "29d28e5bd0948b2e1f1e010000000000", "29d28e5bd0948b2e1f1e000100000000",
            "29d28e5bd0948b2e1f1e000001000000", "29d28e5bd0948b2e1f1e000000010000", "29d28e5bd0948b2e1f1e0000000000",
            "29d28e5bd0948b2e1f1e00000000ffffffff0f",
        ]
    )
    func refused(digits: String) throws {
        let bytes = try #require(Hex.decode(digits))
        #expect(throws: Malformed.self) { try Transaction(packed: bytes) }
    }

    @Test("a packed transaction that is cut anywhere, or has one byte more, is refused")
    func cut() throws {
        let packed = try hex(try vectorFile("antelope-card.json")["packed_transaction"])
        for count in 0..<packed.count {
            #expect(throws: Malformed.self) { try Transaction(packed: Array(packed.prefix(count))) }
        }
        #expect(throws: Malformed.self) { try Transaction(packed: packed + [0]) }
    }
}
