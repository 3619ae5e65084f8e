// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import TestSupport
import Testing
import Text
import WalletFeature

@Suite("Payloads of QR codes")
struct QRPayloadTests {
    private static let address = "0x00000000000000000000000000000000000000Aa"
    private static let signature = "0x" + String(repeating: "1b", count: 65)

    private static func transaction(_ more: String, _ meta: String = "") -> String {
        #"{"dd":"TX","ddv":"2","d":{"rn":"r","ads":["\#(address)"],"ams":["1"],"tid":"1"\#(more)}\#(meta)}"#
    }

    @Test(
        "the four payloads are read, and version 2 of a session",
        arguments: [
            (#"{"dd":"AD","ddv":"2","d":{"da":"\#(address)"}}"#, "AUTHORIZE_DEVICE_WITH_QR"),
            (#"{"dd":"RD","ddv":2,"d":{"da":"\#(address)"},"m":{}}"#, "REVOKE_DEVICE"),
            (transaction(""), "EXECUTE_TRANSACTION"), (transaction(#","o":{"cs":"USD"}"#), "EXECUTE_TRANSACTION"),
            (transaction("", #","m":{"tn":"n","tt":null,"td":"d"}"#), "EXECUTE_TRANSACTION"),
            (
                #"{"dd":"AS","ddv":"1","d":{"sd":{"da":"\#(address)","sa":"\#(address)","sl":"5","et":"9"},"#
                    + #""sig":"\#(signature)"}}"#,
                "AUTHORIZE_SESSION_WITH_QR"
            ),
            (
                "AS|2|\(address.dropFirst(2))|\(address.dropFirst(2))|5|9|\(signature.dropFirst(2))",
                "AUTHORIZE_SESSION_WITH_QR"
            ),
            (
                "AS|2|\(address.dropFirst(2))|\(address.dropFirst(2))|5|9|\(signature)|more",
                "AUTHORIZE_SESSION_WITH_QR"
            ),
        ]
    )
    func accepted(payload: String, workflow: String) throws {
        let read = try #require(QRPayload(payload))
        #expect(read.workflow == workflow)
        #expect(
            read.addresses.map(\.description) == [
                try #require(EthereumAddress(bytes: [UInt8](repeating: 0, count: 19) + [0xAA])).description
            ]
        )
    }

    @Test(
        "anything else is refused",
        arguments: [
            "", "{", "[]", "{}", "AS", "AS|2", "AS|2||||||", #"{"dd":"AD"}"#, #"{"dd":"AD","ddv":"2","d":[]}"#,
            #"{"dd":"ad","ddv":"2","d":{"da":"\#(address)"}}"#, #"{"dd":"AD","d":{"da":"\#(address)"}}"#,
            #"{"dd":"AD","ddv":"2","d":{"da":"00000000000000000000000000000000000000Aa"}}"#,
            #"{"dd":"AD","ddv":"2","d":{"da":"\#(address)00"}}"#, #"{"dd":"AD","ddv":"x","d":{"da":"\#(address)"}}"#,
            #"{"dd":"TX","ddv":"2","d":{"rn":"r","ads":[],"ams":[],"tid":"1"}}"#,
            #"{"dd":"TX","ddv":"2","d":{"rn":"r","ads":["\#(address)"],"ams":[],"tid":"1"}}"#,
            #"{"dd":"TX","ddv":"2","d":{"rn":"r","ads":["\#(address)"],"ams":["-1"],"tid":"1"}}"#,
            #"{"dd":"TX","ddv":"2","d":{"rn":"r","ads":["\#(address)"],"ams":[1.5],"tid":"1"}}"#,
            #"{"dd":"TX","ddv":"2","d":{"rn":"","ads":["\#(address)"],"ams":["1"],"tid":"1"}}"#,
            transaction(#","o":5"#), transaction("", #","m":[]"#), transaction("", #","m":{"tn":5}"#),
            #"{"dd":"TX","ddv":"2","d":{"rn":"r","ads":["#
                + Array(repeating: #""\#(address)""#, count: 65).joined(separator: ",") + #"],"ams":["#
                + Array(repeating: "1", count: 65).joined(separator: ",") + #"],"tid":"1"}}"#,
            "AS|2|\(address)|\(address.dropFirst(2))|5|9|\(signature)",
            "AS|2|\(address.dropFirst(2))|\(address.dropFirst(2))|5|9|0x00",
            #"{"dd":"AD","dd":"RD","ddv":"2","d":{"da":"\#(address)"}}"#,
            #"{"dd":"AD","ddv":"2","d":{"da":"\#(address)"},"d":{"da":"\#(address)"}}"#,
            #"{"dd":"AD","ddv":"2","d":{"da":"0x0000000000000000000000000000000000000001","da":"\#(address)"}}"#,
            transaction(#","rn":"other""#), transaction(#","o":{"cs":"USD","cs":"EUR"}"#),
            transaction("", #","m":{"tn":"n","tn":"o"}"#),
            String(repeating: " ", count: 9000),
        ]
    )
    func refused(payload: String) { #expect(QRPayload(payload) == nil) }
}
