// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
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

    /// A message whose types use each other in a chain, and have further members.
    private static func chain(_ count: Int, members: Int) -> String {
        let more = (0..<members).map { #"{"name":"m\#($0)","type":"uint8\#(String(repeating: "[]", count: 40))"}"# }
        let types = (0..<count).map { number in
            let next = number + 1 < count ? [#"{"name":"next","type":"T\#(number + 1)"}"#] : []
            return "\"T\(number)\":[\((next + more).joined(separator: ","))]"
        }
        let values = (0..<members).map { ",\"m\($0)\":[]" }.joined()
        let message = (0..<count).reversed().reduce("") { text, _ in
            "{" + ((text.isEmpty ? "" : "\"next\":" + text) + values).drop { $0 == "," } + "}"
        }
        return #"{"types":{\#(types.joined(separator: ","))},"primaryType":"T0","domain":{},"message":\#(message)}"#
    }

    @Test("types that use each other in a chain are read up to a length, which bounds the work")
    func chains() throws {
        #expect(throws: Never.self) { try TypedData(try JSON(Self.chain(8, members: 10).utf8)) }
        let long = try JSON(Self.chain(15, members: 60).utf8)
        #expect(throws: Malformed("the types are too long")) { try TypedData(long) }
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
            ("bytes", #""abcd""#), ("uint256", "null"), ("uint", "1"), ("uint8[02]", "[1,2]"), ("uint8[0]", "[]"),
            ("uint8[1][01]", "[[1]]"), ("uint08", "1"),
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

    /// Arrays of structs, a type that uses itself, a domain of another form, data and numbers.
    private static let order = #"""
        {"types":{"EIP712Domain":[{"name":"name","type":"string"},{"name":"kind","type":"Kind"}],
        "Kind":[{"name":"K","type":"uint8"}],
        "Order":[{"name":"lines","type":"Line[]"},{"name":"pair","type":"int16[2]"},{"name":"open","type":"bool"},
        {"name":"data","type":"bytes"},{"name":"salt","type":"bytes4"}],
        "Line":[{"name":"to","type":"address"},{"name":"amount","type":"uint256"},{"name":"parts","type":"Line[]"}]},
        "primaryType":"Order","domain":{"name":"Shop","kind":{"K":1}},
        "message":{"lines":[{"to":"0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB","amount":"5","parts":[
        {"to":"0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826","amount":5,"parts":[]}]}],"pair":[1,-2],"open":true,
        "data":"0x0102","salt":"0x01020304"}}
        """#

    @Test("each change of what is shown changes the digest, or the data are refused", arguments: [mail, order])
    func nothingHidden(text: String) throws {
        let json = try JSON(text.utf8)
        let digest = try TypedData(json).digest
        let changes = json.changes()
        #expect(changes.count > 60)
        // The usual type of the domain need not be there.
        for (place, changed) in changes where place != ".types.EIP712Domain away" {
            #expect((try? TypedData(changed))?.digest != digest, "\(place)")
        }
    }

    @Test("members come in any order, and a number in any notation")
    func notation() throws {
        let digest = try TypedData(try JSON(Self.order.utf8)).digest
        let turned = Self.order.replacing(#""pair":[1,-2],"open":true"#, with: #""open":true,"pair":["0x1","-02"]"#)
        #expect(turned != Self.order)
        #expect(try TypedData(try JSON(turned.utf8)).digest == digest)
    }

    private static let lies = [
        ("the message of EIP712Domain", #""primaryType":"Mail""#, #""primaryType":"EIP712Domain""#),
        ("a type that nothing uses", #""types":{"#, #""types":{"Extra":[{"name":"amount","type":"uint256"}],"#),
        ("a type that only itself uses", #""types":{"#, #""types":{"Extra":[{"name":"next","type":"Extra[]"}],"#),
        (
            "a name of a type with the sign of Kelvin", #""contents":"Hello, Bob!""#,
            #""contents":"Hello, Bob!","\u212A":1"#
        ),
        ("a type string", #""types":{"#, #""types":{"string":[{"name":"a","type":"bool"}],"#),
        ("a type bytes", #""types":{"#, #""types":{"bytes":[{"name":"a","type":"bool"}],"#),
        ("a type uint", #""types":{"#, #""types":{"uint":[{"name":"a","type":"bool"}],"#),
        ("a type int7", #""types":{"#, #""types":{"int7":[{"name":"a","type":"bool"}],"#),
        ("a type function", #""types":{"#, #""types":{"function":[{"name":"a","type":"bool"}],"#),
        ("a second message", #""message":{"#, #""message":{"a":1},"message":{"#),
        ("a second primaryType", #""primaryType":"Mail""#, #""primaryType":"Other","primaryType":"Mail""#),
        ("a second type of one name", #""types":{"#, #""types":{"Mail":[],"#),
        (
            "a second member of one name", #"{"name":"contents","#,
            #"{"name":"from","type":"string"},{"name":"contents","#
        ),
        ("a second domain", #""domain":{"#, #""domain":{},"domain":{"#),
        ("a member of the domain that has no type", #""version":"1""#, #""version":"1","salt":"0x00""#),
        ("a member of the message that has no type", #""contents":"#, #""amount":"1","contents":"#),
        ("a member of an inner value that has no type", #""name":"Cow""#, #""name":"Cow","note":"x""#),
        ("a further member beside the message", #""message":{"#, #""note":"x","message":{"#),
        (
            "a word about a member", #"{"name":"contents","type":"string"}"#,
            #"{"name":"contents","type":"string","note":"x"}"#
        ),
    ]

    @Test("what would be shown and not signed is refused", arguments: lies)
    func refusedLies(name: String, part: String, lie: String) throws {
        let text = Self.mail.replacing(part, with: lie, maxReplacements: 1)
        #expect(text != Self.mail)
        let json = try JSON(text.utf8)
        #expect(throws: Malformed.self, "\(name)") { _ = try TypedData(json) }
    }

    @Test(
        "the types of an empty array are known, and have no second member in their text",
        arguments: ["Unknown[]", "uint7[]", "uint8 a,Foo[]", "[]", "T,U[]", "K[]"]
    )
    func emptyArrays(type: String) throws {
        let json = try JSON(message(type, "[]").utf8)
        #expect(throws: Malformed.self) { _ = try TypedData(json) }
    }

    @Test("a member named K is not found by the sign of Kelvin, which Swift takes as equal")
    func kelvin() throws {
        let right = #"{"types":{"T":[{"name":"K","type":"uint8"}]},"primaryType":"T","domain":{},"message":{"K":1}}"#
        _ = try TypedData(try JSON(right.utf8))
        let json = try JSON(right.replacing(#"{"K":1}"#, with: #"{"\u212A":1}"#).utf8)
        #expect(throws: Malformed.self) { _ = try TypedData(json) }
        let type = try JSON(
            right.replacing(#""T""#, with: #""K""#).replacing(#""primaryType":"K""#, with: #""primaryType":"\u212A""#)
                .utf8
        )
        #expect(throws: Malformed.self) { _ = try TypedData(type) }
    }

    @Test("with the primaryType EIP712Domain the domain alone is signed, and the message is empty")
    func domainAlone() throws {
        let mail = try JSON(Self.mail.utf8)
        let members = [
            JSON.Member("types", .object([.init("EIP712Domain", try #require(mail["types"]?["EIP712Domain"]))])),
            .init("primaryType", .string("EIP712Domain")), .init("domain", try #require(mail["domain"])),
        ]
        let data = try TypedData(.object(members + [.init("message", .object([]))]))
        #expect(data.digest == Keccak256.hash([0x19, 0x01] + (try TypedData(mail)).domainSeparator))
        for message in [JSON.object([.init("a", .number("1"))]), .array([]), .null, .string("")] {
            #expect(throws: Malformed.self) { _ = try TypedData(.object(members + [.init("message", message)])) }
        }
    }

    @Test(
        "a struct has no name that another program takes as a type",
        arguments: [
            "function", "byte", "fixed", "ufixed", "fixed128x18", "tuple", "tuple2", "mapping", "struct", "enum",
            "contract",
            "var", "hash", "array", "real", "address", "bool", "string", "bytes", "uint", "int7", "bytes33", "uint8x8",
        ]
    )
    func namesOfTypes(name: String) throws {
        func text(_ name: String) -> String {
            message(name, #"{"a":1}"#, more: #","\#(name)":[{"name":"a","type":"uint8"}]"#)
        }
        let refused = try JSON(text(name).utf8)
        #expect(throws: Malformed.self) { _ = try TypedData(refused) }
        _ = try TypedData(try JSON(text("x\(name)").utf8))
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
