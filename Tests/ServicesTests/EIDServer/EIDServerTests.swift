// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing
import Text

@testable import EIDServer
@testable import VirtualEID

/// What the dialogues with the server do not show.
@Suite(.timeLimit(.minutes(5))) struct EIDServerTests {
    @Test(
        "invalid parameters are refused",
        arguments: [
            ("mode", "tls"), ("required", "Shoes"), ("batch", "-1"), ("can", "yes"), ("fault", "none"),
        ]
    )
    func wrong(name: String, value: String) {
        #expect(throws: ServiceOptions.Wrong.self) { try ServiceOptions([name: value]) }
    }

    @Test("EF.CardSecurity of the virtual card is genuine, a changed one is not")
    func passiveAuthentication() throws {
        let authority = try TestPKI.file("csca.der")
        let digits = try #require(DefaultCard.mandatoryFiles.first { $0.fileID == 0x011D }).content
        let file = try #require(Hex.decode(digits))
        #expect(PassiveAuthentication.isGenuine(file, authority: authority))
        var changed = file
        changed[file.count / 4] ^= 1
        #expect(!PassiveAuthentication.isGenuine(changed, authority: authority))
        #expect(!PassiveAuthentication.isGenuine([], authority: authority))
    }

    @Test("closing a listener twice does not close a later socket with the same number")
    func closedTwice() throws {
        for _ in 0..<50 {
            let listener = try Listener(.silent)
            listener.close()
            let pairs = (0..<32).map { _ in
                var pair: [Int32] = [-1, -1]
                socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair)
                return pair
            }
            listener.close()
            for pair in pairs {
                var byte: UInt8 = 1
                #expect(send(pair[0], &byte, 1, Int32(MSG_NOSIGNAL)) == 1)
                for end in pair { Glibc.close(end) }
            }
        }
    }

    @Test("names have their namespaces")
    func reads() throws {
        let text = #"<x:a xmlns:x="urn:x" xmlns="urn:y" b="c" x:b="d">1<b/>2<x:b xmlns:x="urn:z"> é </x:b></x:a>"#
        let root = try XMLReader.document(Array(text.utf8))
        #expect(root.name == .init(namespace: "urn:x", local: "a"))
        #expect(root.attributes[.init(namespace: "", local: "b")] == "c")
        #expect(root.attributes[.init(namespace: "urn:x", local: "b")] == "d")
        #expect(root.text == "12")
        #expect(root.children.map(\.name.namespace) == ["urn:y", "urn:z"])
        #expect(root.children[1].trimmed == "é")
        #expect(throws: XMLReader.Malformed.self) { try XMLReader.document(Array("<a>".utf8)) }
    }

    @Test("written XML can be read")
    func writes() throws {
        let written = XML.element("a", [("b", "\"<&>")], text: "<&>\"'")
        let read = try XMLReader.document(written.document)
        #expect(read.attributes[.init(namespace: "", local: "b")] == "\"<&>")
        #expect(read.text == "<&>\"'")
    }
}
