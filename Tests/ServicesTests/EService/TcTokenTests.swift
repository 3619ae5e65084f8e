// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Testing

@testable import EService

struct TcTokenTests {
    /// A token with changed elements; nil leaves an element out.
    private static func document(_ changes: [String: String?] = [:], extra: String = "") -> [UInt8] {
        let names = [
            "ServerAddress", "SessionIdentifier", "RefreshAddress", "CommunicationErrorAddress", "Binding",
            "PathSecurity-Protocol",
        ]
        var values: [String: String] = [
            "ServerAddress": "https://eid.example/paos", "SessionIdentifier": "1a2b",
            "RefreshAddress": "https://service.example/done?s=1",
            "CommunicationErrorAddress": "https://service.example/bad",
            "Binding": "urn:liberty:paos:2006-08", "PathSecurity-Protocol": "urn:ietf:rfc:4279", "PSK": "00FF",
        ]
        for (name, value) in changes { values[name] = value }
        let elements = names.compactMap { name in values[name].map { "<\(name)>\($0)</\(name)>" } }.joined()
        let key = values["PSK"].map { "<PathSecurity-Parameters><PSK>\($0)</PSK></PathSecurity-Parameters>" } ?? ""
        return Array("<?xml version=\"1.0\"?><TCTokenType>\(elements)\(key)\(extra)</TCTokenType>".utf8)
    }

    @Test("a token is read with all its elements")
    func valid() throws {
        let token = try TcToken(Self.document(["SessionIdentifier": " 1a2b\n"]))
        #expect(token.serverAddress.text == "https://eid.example/paos")
        #expect(token.sessionIdentifier == "1a2b")
        #expect(token.refreshAddress.text == "https://service.example/done?s=1")
        #expect(token.communicationErrorAddress?.text == "https://service.example/bad")
        #expect(token.preSharedKey?.withKey { Array($0) } == [0x00, 0xFF])
        #expect(token.preSharedKey?.identity == Array("1a2b".utf8))
    }

    @Test("elements are found by local name, and unknown ones are ignored")
    func namespaces() throws {
        let text = String(decoding: Self.document(extra: "<More/>"), as: UTF8.self)
            .replacing("<TCTokenType>", with: "<t:TCTokenType xmlns:t='urn:t' xmlns='urn:u'>")
            .replacing("</TCTokenType>", with: "</t:TCTokenType>")
        let (token, plain) = (try TcToken(Array(text.utf8)), try TcToken(Self.document()))
        #expect(token.refreshAddress.text == plain.refreshAddress.text)
        #expect(token.preSharedKey?.withKey { Array($0) } == [0x00, 0xFF])
    }

    @Test(
        "a token without an optional element is valid",
        arguments: ["CommunicationErrorAddress", "PathSecurity-Protocol", "PSK"]
    )
    func optional(name: String) throws {
        let token = try TcToken(Self.document([name: nil]))
        #expect((token.preSharedKey == nil) == (name == "PSK"))
        #expect((token.communicationErrorAddress == nil) == (name == "CommunicationErrorAddress"))
    }

    @Test(
        "a token that breaks a rule is refused, and its addresses are still known",
        arguments: [
            ("Binding", "urn:liberty:paos:2003-08"), ("Binding", nil), ("PathSecurity-Protocol", "urn:ietf:rfc:5487"),
            ("PathSecurity-Protocol", ""), ("ServerAddress", nil), ("ServerAddress", ""),
            ("ServerAddress", "http://eid.example"), ("SessionIdentifier", nil), ("SessionIdentifier", " "),
            ("SessionIdentifier", String(repeating: "a", count: 256)), ("PSK", ""), ("PSK", "0"), ("PSK", "zz"),
            ("PSK", String(repeating: "00", count: 257)),
        ] as [(String, String?)]
    )
    func refused(name: String, value: String?) {
        #expect {
            try TcToken(Self.document([name: value]))
        } throws: { error in
            let refusal = error as? InvalidTcToken
            return refusal?.refreshAddress?.text == "https://service.example/done?s=1"
                && refusal?.communicationErrorAddress?.text == "https://service.example/bad"
        }
    }

    @Test(
        "the words of a refusal name the element",
        arguments: [
            ("Binding", nil, "Binding is not PAOS"),
            ("PathSecurity-Protocol", "x", "PathSecurity-Protocol is unknown"),
            ("ServerAddress", nil, "ServerAddress is not an https address"),
            ("RefreshAddress", nil, "RefreshAddress is not an https address"),
            ("SessionIdentifier", nil, "SessionIdentifier is missing or too long"),
            ("PSK", "x", "PSK is not hexBinary"),
        ] as [(String, String?, String)]
    )
    func words(name: String, value: String?, words: String) {
        #expect {
            try TcToken(Self.document([name: value]))
        } throws: { error in
            (error as? InvalidTcToken)?.words == words
        }
    }

    @Test(
        "a text with more than 255 marks in a row, which cannot be compared, is refused in each element",
        arguments: [
            "ServerAddress", "SessionIdentifier", "RefreshAddress", "CommunicationErrorAddress", "Binding",
            "PathSecurity-Protocol",
        ]
    )
    func marks(name: String) {
        #expect {
            try TcToken(Self.document([name: "a" + String(repeating: "\u{301}", count: 256)]))
        } throws: { error in
            (error as? InvalidTcToken)?.words.utf8.elementsEqual(
                "the TcToken cannot be read: \(name) is no text that can be compared".utf8
            ) == true
        }
    }

    @Test(
        "what is no document is refused, and no address is taken from it",
        arguments: [
            "", "no XML", "<TCTokenType>", "<TCTokenType/><More/>", "<!DOCTYPE x><TCTokenType/>", "\u{0}",
            "<TCTokenType><RefreshAddress>https://a.example</RefreshAddress>",
        ]
    )
    func noDocument(text: String) {
        #expect {
            try TcToken(Array(text.utf8))
        } throws: { error in
            let refusal = error as? InvalidTcToken
            return refusal?.refreshAddress == nil && refusal?.communicationErrorAddress == nil
                && refusal?.words.hasPrefix("the TcToken cannot be read: ") == true
        }
    }

    @Test("without an https RefreshAddress only the CommunicationErrorAddress is left")
    func noRefresh() {
        for value in [nil, "", "http://service.example/", "nowhere"] as [String?] {
            #expect {
                try TcToken(Self.document(["RefreshAddress": value]))
            } throws: { error in
                let refusal = error as? InvalidTcToken
                return refusal?.refreshAddress == nil && refusal?.communicationErrorAddress != nil
            }
        }
    }

    @Test("developer mode accepts an http RefreshAddress, and no http ServerAddress")
    func developerMode() throws {
        #expect(
            try TcToken(Self.document(["RefreshAddress": "http://localhost/r"]), allowsHTTP: true).refreshAddress
                .isSecure == false
        )
        #expect(throws: InvalidTcToken.self) {
            try TcToken(Self.document(["ServerAddress": "http://localhost/paos"]), allowsHTTP: true)
        }
    }

    @Test(
        "a token with a repeated element is refused",
        arguments: [
            "<Binding>urn:liberty:paos:2006-08</Binding>", "<PathSecurity-Parameters/>", "<ServerAddress/>",
            "<SessionIdentifier>1a2b</SessionIdentifier>", "<RefreshAddress/>", "<CommunicationErrorAddress/>",
            "<PathSecurity-Protocol/>",
        ]
    )
    func duplicates(extra: String) {
        #expect(throws: InvalidTcToken.self) { try TcToken(Self.document(extra: extra)) }
    }

    @Test("a token of more than 64 KiB is refused")
    func tooLarge() {
        let blanks = [UInt8](repeating: 0x20, count: TcToken.maximumLength)
        #expect(throws: InvalidTcToken.self) { try TcToken(Self.document() + blanks) }
    }
}
