// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

/// Typed data for a payload, and the members of the payload that are not proven by them; nil: they are refused.
struct PayloadForgery: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let payload: String
    /// The members of the message: type, name and value.
    let message: [(type: String, name: String, value: String)]
    var more = ""
    let left: [String]?

    init(_ name: String, _ payload: String, _ members: [String], more: String = "", left: [String]?) {
        testDescription = name
        self.payload = payload
        self.more = more
        self.left = left
        message = members.map { member in
            let parts = member.split(separator: " ", maxSplits: 2).map(String.init)
            return (parts[0], parts[1], parts[2])
        }
    }

    var typedData: String {
        let types = message.map { #"{"name":"\#($0.name)","type":"\#($0.type)"}"# }.joined(separator: ",")
        let values = message.map { #""\#($0.name)":\#($0.value)"# }.joined(separator: ",")
        return
            #"{"types":{"Do":[\#(types)]\#(more)},"primaryType":"Do","domain":{"name":"d"},"message":{\#(values)}}"#
    }
}

extension PayloadForgery {
    static let all = devices + payments + sessions

    private static let one = "0x" + String(repeating: "ab", count: 20)
    private static let two = "0x" + String(repeating: "cd", count: 20)
    private static let device = #"{"dd":"AD","ddv":"2","d":{"da":"\#(one)"}}"#
    private static let session =
        #"{"dd":"AS","ddv":"2","d":{"sd":{"da":"\#(one)","sa":"\#(two)","sl":"1000","et":1900000000},"#
        + #""sig":"0x\#(String(repeating: "1b", count: 65))"}}"#

    private static func payment(_ addresses: [String], _ amounts: [String], _ more: String = "") -> String {
        let addresses = addresses.map { "\"\($0)\"" }.joined(separator: ",")
        let amounts = amounts.map { "\"\($0)\"" }.joined(separator: ",")
        return #"{"dd":"TX","ddv":"2","d":{"rn":"Pay","ads":[\#(addresses)],"ams":[\#(amounts)],"tid":"t"}\#(more)}"#
    }

    /// A call of a function with words of 32 bytes.
    private static func call(_ words: String...) -> String {
        "\"0xa9059cbb" + words.map { String(repeating: "0", count: 64 - $0.utf8.count) + $0 }.joined() + "\""
    }

    private static let q1 = "\"\(one)\""
    private static let q2 = "\"\(two)\""
    private static let hex = one.dropFirst(2)
    private static let both = payment([one, two], ["1000", "1"])

    /// What is said of a device.
    private static let devices = [
        PayloadForgery("the device", device, ["address da \(q1)"], left: []),
        PayloadForgery("the device in capitals", device, ["address da \"0x\(hex.uppercased())\""], left: []),
        PayloadForgery(
            "the only address",
            device,
            ["address owner \(q1)", "uint256 nonce 5", "string memo \"x\""],
            left: []
        ),
        PayloadForgery(
            "an inner device",
            device,
            ["In in {\"device\":\(q1)}"],
            more: inner("device address"),
            left: []
        ),
        PayloadForgery(
            "one of two addresses",
            device,
            ["address safe \(q2)", "address owner \(q1)"],
            left: ["address"]
        ),
        PayloadForgery("the safe first", device, ["address owner \(q1)", "address safe \(q2)"], left: ["address"]),
        PayloadForgery("a call", device, ["bytes data \(call(String(hex), "1"))"], left: ["address"]),
        PayloadForgery(
            "a word",
            device,
            ["bytes32 data \"0x\(String(repeating: "0", count: 24))\(hex)\""],
            left: ["address"]
        ),
        PayloadForgery("another device", device, ["address da \(q2)", "address other \(q1)"], left: nil),
        PayloadForgery(
            "two devices",
            device,
            ["address da \(q1)", "In in {\"da\":\(q2)}"],
            more: inner("da address"),
            left: nil
        ),
        PayloadForgery("a string", device, ["address owner \(q2)", "string memo \(q1)"], left: nil),
        PayloadForgery("a string alone", device, ["string memo \(q1)"], left: nil),
        PayloadForgery("a string named da", device, ["string da \(q1)"], left: nil),
        PayloadForgery("a part of a string", device, ["string memo \"not to \(one)\""], left: nil),
        PayloadForgery("longer data", device, ["bytes data \"\(one)ff\""], left: nil),
        PayloadForgery("data before it", device, ["bytes data \"0xff\(hex)\""], left: nil),
        PayloadForgery(
            "words out of place",
            device,
            ["bytes data \"0x\(String(repeating: "0", count: 26))\(hex)\""],
            left: nil
        ),
        PayloadForgery(
            "a full word",
            device,
            ["bytes32 data \"0x\(String(repeating: "f", count: 24))\(hex)\""],
            left: nil
        ),
        PayloadForgery("a number", device, ["uint256 n \(q1)"], left: nil),
        PayloadForgery("a number in decimal digits", device, ["uint160 da \(q1)"], left: nil),
        PayloadForgery("a name", device, ["uint8 x\(hex) 1"], left: nil),
        PayloadForgery("the domain", device, ["uint8 a 1"], left: nil),
    ]

    private static let payments = [
        PayloadForgery(
            "arrays",
            both,
            ["address[] to [\(q1),\(q2)]", "uint256[] am [1000,1]"],
            left: ["rule_name", "token_id"]
        ),
        PayloadForgery(
            "all by name",
            both,
            [
                "string rn \"Pay\"", "address[] ads [\(q1),\(q2)]", "uint256[2] amounts [\"0x3e8\",1]",
                "string tokenId \"t\"",
                "uint256 nonce 7", "address from \(q1)",
            ],
            left: []
        ),
        PayloadForgery(
            "structs",
            both,
            [#"In[] in [{"to":\#(q1),"am":"1000"},{"to":\#(q2),"am":1}]"#],
            more: inner("to address", "am uint256"),
            left: ["rule_name", "token_id"]
        ),
        PayloadForgery(
            "amounts in turn",
            both,
            ["address[] to [\(q1),\(q2)]", "uint256[] am [1,1000]"],
            left: ["rule_name", "amounts", "token_id"]
        ),
        PayloadForgery(
            "addresses in turn",
            both,
            ["address[] to [\(q2),\(q1)]", "uint256[] am [1000,1]"],
            left: ["rule_name", "token_holder_addresses", "amounts", "token_id"]
        ),
        PayloadForgery(
            "structs in turn",
            both,
            [#"In[] in [{"to":\#(q1),"am":1},{"to":\#(q2),"am":1000}]"#],
            more: inner("to address", "am uint256"),
            left: ["rule_name", "amounts", "token_id"]
        ),
        PayloadForgery(
            "an amount in the memo",
            payment([one], ["1000"]),
            ["address[] to [\(q1)]", "uint256[] am [1]", "string memo \"1000\""],
            left: ["rule_name", "amounts", "token_id"]
        ),
        PayloadForgery(
            "the right number is another one",
            payment([one], ["1000"]),
            ["address[] to [\(q1)]", "uint256 nonce 1000", "uint256 am 1"],
            left: ["rule_name", "amounts", "token_id"]
        ),
        PayloadForgery(
            "a wrong amount by name",
            payment([one], ["1000"]),
            ["address to \(q1)", "uint256 n 1000", "uint256 amount 1"],
            left: ["rule_name", "amounts", "token_id"]
        ),
        PayloadForgery(
            "two amounts, one value",
            payment([one, two], ["5", "5"]),
            ["address[] to [\(q1),\(q2)]", "uint256[] am [5]"],
            left: ["rule_name", "amounts", "token_id"]
        ),
        PayloadForgery(
            "a third amount",
            both,
            ["address[] to [\(q1),\(q2)]", "uint256[] am [1000,1,9]"],
            left: ["rule_name", "amounts", "token_id"]
        ),
        PayloadForgery(
            "arrays of arrays",
            both,
            ["address[] to [\(q1),\(q2)]", "uint256[][] am [[1000],[1]]"],
            left: ["rule_name", "amounts", "token_id"]
        ),
        PayloadForgery(
            "amounts in a call",
            payment([one], ["1000"]),
            ["bytes data \(call(String(hex), "3e8"))"],
            left: ["rule_name", "token_holder_addresses", "amounts", "token_id"]
        ),
        PayloadForgery(
            "rule and token in the memo",
            payment([one], ["1"]),
            ["address to \(q1)", "uint8 am 1", "string memo \"Pay\"", "string note \"t\""],
            left: ["rule_name", "token_id"]
        ),
        PayloadForgery(
            "meta",
            payment([one], ["1"], #","m":{"tn":"Rent","tt":"to","td":""}"#),
            ["address to \(q1)", "uint8 am 1", #"In m {"name":"Rent","type":"to","details":""}"#],
            more: inner("name string", "type string", "details string"),
            left: ["rule_name", "token_id"]
        ),
        PayloadForgery(
            "another meta",
            payment([one], ["1"], #","m":{"tn":"Rent","tt":"to","td":""}"#),
            ["address to \(q1)", "uint8 am 1", "string memo \"Rent\""],
            left: ["rule_name", "token_id", "meta"]
        ),
        PayloadForgery(
            "one address for two",
            payment([one, one], ["1", "1"]),
            ["address to \(q1)", "uint8[] am [1,1]"],
            left: nil
        ),
        PayloadForgery("a receiver less", both, ["address[] to [\(q1)]", "uint8[] am [1]"], left: nil),
        PayloadForgery(
            "other receivers by name",
            both,
            ["address[] ads [\(q2),\(q1)]", "uint16[] ams [1000,1]"],
            left: nil
        ),
    ]

    private static let sessions = [
        PayloadForgery(
            "by name",
            session,
            ["address da \(q1)", "address sa \(q2)", "uint256 sl 1000", "uint256 et 1900000000"],
            left: ["session_signature"]
        ),
        PayloadForgery(
            "by other words",
            session,
            [
                "uint256 expiration_time 1900000000", "uint256 nonce 7", "address sessionAddress \(q2)",
                "uint256 spendingLimit \"1000\"", "address device_address \(q1)", "address safe \(q2)",
            ],
            left: ["session_signature"]
        ),
        PayloadForgery(
            "in order",
            session,
            ["address a \(q2)", "address b \(q1)", "uint256 c 1000", "uint256 d 1900000000"],
            left: ["session_signature"]
        ),
        PayloadForgery(
            "out of order",
            session,
            ["address a \(q1)", "address b \(q2)", "uint256 c 1900000000", "uint256 d 1000"],
            left: ["address", "device_address", "spending_limit", "expiration_time", "session_signature"]
        ),
        PayloadForgery(
            "a limit in the nonce",
            session,
            [
                "address da \(q1)", "address sa \(q2)", "uint256 sl 999999", "uint256 et 1900000000",
                "uint256 nonce 1000",
            ],
            left: ["spending_limit", "session_signature"]
        ),
        PayloadForgery(
            "a limit in the nonce, without names",
            session,
            [
                "address da \(q1)", "address sa \(q2)", "uint256 nonce 1000", "uint256 until 1900000000",
                "uint256 most 999999",
            ],
            left: ["spending_limit", "expiration_time", "session_signature"]
        ),
        PayloadForgery(
            "a limit as a text",
            session,
            ["address da \(q1)", "address sa \(q2)", "uint256 et 1900000000", "string limit \"1000\""],
            left: ["spending_limit", "session_signature"]
        ),
        PayloadForgery(
            "device and session in turn",
            session,
            ["address da \(q2)", "address sa \(q1)", "uint256 sl 1000", "uint256 et 1900000000"],
            left: nil
        ),
        PayloadForgery(
            "the session alone is another one",
            session,
            ["address sa \(q1)", "address x \(q2)"],
            left: nil
        ),
    ]

    private static func inner(_ members: String...) -> String {
        let list = members.map { member in
            let parts = member.split(separator: " ")
            return #"{"name":"\#(parts[0])","type":"\#(parts[1])"}"#
        }
        return #","In":[\#(list.joined(separator: ","))]"#
    }
}
