// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import EIDServer

@Suite(.timeLimit(.minutes(5))) struct ServerXMLTests {
    @Test("names are resolved, references replaced, comments and instructions skipped")
    func reads() throws {
        let text = """
            <?xml version="1.0"?><!-- a --><x:a xmlns:x="urn:x" xmlns="urn:y" b='&#x41;&amp;' x:c="d">\
            1<b/>&lt;<!-- c --><![CDATA[<2>]]><x:b xmlns:x="urn:z"> é </x:b></x:a>
            """
        let root = try XMLReader.document(Array(text.utf8))
        #expect(root.name == .init(namespace: "urn:x", local: "a"))
        #expect(root.attributes[.init(namespace: "", local: "b")] == "A&")
        #expect(root.attributes[.init(namespace: "urn:x", local: "c")] == "d")
        #expect(root.text == "1<<2>")
        #expect(root.children.map(\.name.namespace) == ["urn:y", "urn:z"])
        #expect(root.children[1].trimmed == "é")
    }

    @Test(
        "invalid XML is refused",
        arguments: [
            "", "a", "<a>", "<a></b>", "<a/><a/>", "<a/>b", "<a b=c/>", "<a b='1' b='2'/>", "<a b='<'/>", "<x:a/>",
            "<a:b:c/>", "<a>&b;</a>", "<a>&#xD800;</a>", "<a>&amp</a>", "<!DOCTYPE a><a/>", "<a><![CDATA[</a>", "<a",
            "<a b", "<a b=", "<a b='", "<a><!--</a>", "<?xml", "</a>",
        ]
    )
    func refuses(text: String) {
        #expect(throws: XMLReader.Malformed.self) { try XMLReader.document(Array(text.utf8)) }
    }

    @Test("depth and number of elements are bounded")
    func bounds() {
        #expect(throws: XMLReader.Malformed.self) { try XMLReader.document(Hostile.deep) }
        let wide = "<a>" + String(repeating: "<b/>", count: 20_000) + "</a>"
        #expect(throws: XMLReader.Malformed.self) { try XMLReader.document(Array(wide.utf8)) }
    }

    @Test("written XML can be read")
    func writes() throws {
        let written = XML.element("a", [("b", "\"<&>")], text: "<&>\"'")
        let read = try XMLReader.document(written.document)
        #expect(read.attributes[.init(namespace: "", local: "b")] == "\"<&>")
        #expect(read.text == "<&>\"'")
    }
}
