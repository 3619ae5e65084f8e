// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import TestSupport
import Testing
import Text

/// The example of EIP-712 and rules for hostile data.
@Suite("Typed data")
struct TypedDataTests {
    private static let mail = #"""
        {"types":{"EIP712Domain":[{"name":"name","type":"string"},{"name":"version","type":"string"},
        {"name":"chainId","type":"uint256"},{"name":"verifyingContract","type":"address"}],
        "Person":[{"name":"name","type":"string"},{"name":"wallet","type":"address"}],
        "Mail":[{"name":"from","type":"Person"},{"name":"to","type":"Person"},{"name":"contents","type":"string"}]},
        "primaryType":"Mail",
        "domain":{"name":"Ether Mail","version":"1","chainId":1,
        "verifyingContract":"0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC"},
        "message":{"from":{"name":"Cow","wallet":"0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
        "to":{"name":"Bob","wallet":"0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},"contents":"Hello, Bob!"}}
        """#

    @Test("the example of EIP-712 has its digest, with and without the type of the domain")
    func example() throws {
        let digest = "be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2"
        let data = try TypedData(try JSON(Self.mail.utf8))
        #expect(Hex.encode(data.digest) == digest)
        #expect(
            Hex.encode(data.domainSeparator) == "f2cee375fa42b42143804025fc449deafd50cc031ca257e0b194a650a912090f"
        )
        var short = Self.mail
        let start = try #require(short.firstRange(of: #""EIP712Domain":"#)).lowerBound
        let end = try #require(short.firstRange(of: #""Person":[{"#)).lowerBound
        short.removeSubrange(start..<end)
        #expect(Hex.encode(try TypedData(try JSON(short.utf8)).digest) == digest)
    }

    @Test("an address is found in the message, also inside of bytes")
    func mentions() throws {
        let data = try TypedData(try JSON(Self.mail.utf8))
        let bob = try #require(EthereumAddress(bytes: [UInt8](repeating: 0xBB, count: 20)))
        let contract = try #require(EthereumAddress(bytes: [UInt8](repeating: 0xCC, count: 20)))
        #expect(data.mentions(bob))
        #expect(!data.mentions(contract))
    }

    private func message(_ type: String, _ value: String, more: String = "") -> String {
        #"{"types":{"T":[{"name":"v","type":"\#(type)"}]\#(more)},"primaryType":"T","domain":{},"message":{"v":\#(value)}}"#
    }

    @Test(
        "values outside of their types are refused",
        arguments: [
            ("uint8", "256"), ("uint8", "-1"), ("int8", "128"), ("int8", "-129"), ("uint256", #""0x""#),
            ("uint256", #""1e3""#), ("uint256", "1.5"), ("uint7", "1"), ("uint264", "1"), ("bytes33", #""0x""#),
            ("bytes2", #""0x00""#), ("bytes0", #""0x""#), ("address", #""0x00""#), ("bool", "1"), ("string", "5"),
            ("Unknown", "{}"), ("T", #"{"v":1}"#), ("uint8[2]", "[1]"), ("uint8[", "[]"), ("uint8[x]", "[]"),
            ("bytes", #""abcd""#), ("uint256", "null"), ("uint", "1"),
        ]
    )
    func refused(type: String, value: String) throws {
        let json = try JSON(message(type, value).utf8)
        #expect(throws: Malformed.self) { _ = try TypedData(json) }
    }

    @Test(
        "the ends of the ranges are accepted",
        arguments: [
            ("uint8", "255"), ("int8", "-128"), ("int8", "127"), ("int256", #""-1""#), ("uint8[][2]", "[[1],[]]"),
            (
                "uint256", #""115792089237316195423570985008687907853269984665640564039457584007913129639935""#
            ), ("bytes32", #""0x\#(String(repeating: "00", count: 32))""#), ("bytes", #""0x""#),
        ]
    )
    func accepted(type: String, value: String) throws {
        let json = try JSON(message(type, value).utf8)
        #expect(try TypedData(json).digest.count == 32)
    }

    @Test("members that are not signed, endless types and huge data are refused")
    func hostile() throws {
        let deep = String(repeating: #"{"v":"#, count: 20) + "1" + String(repeating: "}", count: 20)
        let many = "[" + Array(repeating: "1", count: 5000).joined(separator: ",") + "]"
        let unsigned = message("uint8", "1").replacing(#"{"v":1}"#, with: #"{"v":1,"w":2}"#)
        let extra = message("uint8", "1").replacing(#""domain""#, with: #""x":1,"domain""#)
        for text in [message("T", deep), message("uint8[]", many), unsigned, extra, #"{"types":{}}"#] {
            let json = try JSON(text.utf8)
            #expect(throws: Malformed.self, "\(text.prefix(80))") { _ = try TypedData(json) }
        }
    }
}
