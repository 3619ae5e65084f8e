// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

@testable import Antelope

@Suite("Answers of nodes", .timeLimit(.minutes(5)))
struct NodeAnswerTests {
    private static func recorded(_ kind: String) throws -> [[UInt8]] {
        try vectorFile("antelope-answers.json").texts(kind).map { Array($0.utf8) }
    }

    @Test("recorded answers of real nodes are read")
    func real() throws {
        for bytes in try Self.recorded("info") {
            let info = try NodeInfo(bytes)
            let json = try JSON(bytes)
            #expect(info.chain.description == json["chain_id"]?.string)
            #expect(
                json["last_irreversible_block_num"]?.int.map { UInt16(truncatingIfNeeded: $0) } == info.reference.number
            )
        }
        for bytes in try Self.recorded("account") { #expect(!(try NodeAccount(bytes).permissions.isEmpty)) }
        let token = try Self.recorded("rawABI").compactMap { try? ABI(packed: NodeAnswer.rawABI($0)) }
        #expect(try token.compactMap { try $0.type(of: AccountName("transfer")) } == ["transfer"])
        #expect(
            try Self.recorded("abi").contains {
                try ABI(NodeAnswer.abi($0)).type(of: AccountName("transfer")) == "transfer"
            }
        )
        let eos = try SymbolCode("EOS")
        #expect(try CurrencyStats(Self.recorded("stats")[0], of: eos).symbol == TokenSymbol("4,EOS"))
        #expect(try CurrencyStats(Self.recorded("stats")[0], of: SymbolCode("WAX")).symbol == nil)
        let codes = try Self.recorded("refused").map { try NodeRefusal(status: 500, $0).code }
        #expect(codes.contains(3_100_002))
        for bytes in try Self.recorded("pushed") {
            let id = try hex(try JSON(bytes)["transaction_id"])
            #expect(try PushAnswer(bytes, id: id) == .executed)
            #expect(throws: Malformed.self) { try PushAnswer(bytes, id: [UInt8](repeating: 7, count: 32)) }
        }
    }

    @Test("a permission has the key, needs more than the key, or does not have it")
    func authority() throws {
        let text = "EOS7tgwU6E7pAUQJgqEJt66Yi8cWvanTUW8ZfBjeXeJBQvhTU9ypi"
        let key = try KeyText(text, .publicKey)
        func account(_ weight: Int) throws -> NodeAccount {
            try NodeAccount(
                Array(
                    #"{"account_name":"bob","permissions":[{"perm_name":"active","parent":"owner","required_auth":{"threshold":2,"keys":[{"key":"\#(text)","weight":\#(weight)}],"accounts":[],"waits":[]}}]}"#
                        .utf8
                )
            )
        }
        let active = try AccountName("active")
        #expect(try account(2).authority(of: key, for: active) == .full)
        #expect(try account(1).authority(of: key, for: active) == .partial)
        #expect(try account(2).authority(of: key, for: AccountName("owner")) == .missing)
    }

    private static let wrong = [
        "", "[]", "{}", "null", "7", "{", #"{"chain_id":7}"#, #"{"abi":7}"#, #"{"abi":"!"}"#, #"{"abi":""}"#,
        #"{"abi":{"version":7}}"#, #"{"account_name":"a","permissions":[7]}"#,
        #"{"account_name":"a","permissions":[{"perm_name":"x","required_auth":{"threshold":"1","keys":[]}}]}"#,
        #"{"EOS":7}"#, #"{"EOS":{"supply":7}}"#, #"{"EOS":{"supply":"1 WAX"}}"#, #"[7]"#, #"["x"]"#,
        #"{"code":500}"#, #"{"message":7}"#, #"{"transaction_id":7}"#, #"{"transaction_id":"00"}"#,
        String(repeating: "[", count: 100_000), #"{"abi":"\#(String(repeating: "AAAA", count: 50))"}"#,
    ]

    @Test("answers of a wrong type are errors", arguments: wrong)
    func hostile(text: String) throws {
        let bytes = Array(text.utf8)
        let eos = try SymbolCode("EOS")
        #expect(throws: Malformed.self) { try NodeInfo(bytes) }
        #expect(throws: Malformed.self) { try NodeAccount(bytes) }
        #expect(throws: Malformed.self) { try ABI(packed: NodeAnswer.rawABI(bytes)) }
        #expect(throws: Malformed.self) { try ABI(NodeAnswer.abi(bytes)) }
        #expect(throws: Malformed.self) { try NodeRefusal(status: 500, bytes) }
        #expect(throws: Malformed.self) { try PushAnswer(bytes, id: []) }
        if text != "[]" { #expect(throws: Malformed.self) { try CurrencyBalance(bytes, of: eos) } }
        if (try? JSON(bytes))?["EOS"] != nil || (try? JSON(bytes))?.members == nil {
            #expect(throws: Malformed.self) { try CurrencyStats(bytes, of: eos) }
        }
    }

    @Test("an ABI that does not have its hash is refused")
    func abiHash() throws {
        let whole = try Self.recorded("rawABI").first { String(decoding: $0, as: UTF8.self).contains("eosio.token") }
        let bytes = try #require(whole)
        let text = String(decoding: bytes, as: UTF8.self)
        let hash = try JSON(bytes).text("abi_hash")
        let other = text.replacing(hash, with: String(repeating: "0", count: 64))
        #expect(throws: Malformed("the ABI does not match its hash")) { try NodeAnswer.rawABI(Array(other.utf8)) }
    }

    @Test("the errors of a node are distinguished")
    func refusals() throws {
        func refusal(_ text: String) throws -> NodeRefusal { try NodeRefusal(status: 500, Array(text.utf8)) }
        let overdrawn = try refusal(
            #"{"code":500,"message":"Internal Service Error","error":{"code":3050003,"name":"eosio_assert_message_exception","what":"eosio_assert_message assertion failure","details":[{"message":"assertion failure with message: overdrawn balance"}]}}"#
        )
        #expect(overdrawn.isOverdrawn && !overdrawn.isExpired)
        let expired = try refusal(
            #"{"code":500,"message":"Internal Service Error","error":{"code":3040005,"name":"expired_tx_exception","what":"Expired Transaction","details":[]}}"#
        )
        #expect(expired.isExpired && !expired.isOverdrawn)
        #expect(expired.text == "Expired Transaction")
        let duplicate = try refusal(
            #"{"code":409,"message":"Conflict","error":{"code":3040008,"name":"tx_duplicate","what":"Duplicate transaction","details":[{"message":"duplicate transaction b3c6"}]}}"#
        )
        #expect(duplicate.isDuplicate && !duplicate.isExpired && !expired.isDuplicate)
    }
}
