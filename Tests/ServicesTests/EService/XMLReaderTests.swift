// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Testing
import Text

@testable import EService
@testable import Transfers

struct XMLReaderTests {
    private func read(_ text: String) throws(Malformed) -> XMLElement {
        try XMLReader.read(Array(text.utf8), maximumLength: 1024 * 1024)
    }

    @Test("elements and attributes are read by local name, with any prefix or namespace")
    func names() throws {
        let root = try read(
            "<p:a xmlns:p='urn:x' xmlns:q='urn:y' q:type='p:T'><b>1</b><p:b> 2 </p:b>text<![CDATA[<&]]></p:a>"
        )
        #expect(root.name == "a")
        #expect(root.attributes == ["type": "p:T"])
        #expect(root.all("b").map(\.trimmed) == ["1", "2"])
        #expect(root.text == "text<&")
        #expect(throws: Malformed("b is repeated")) { try root.only("b") }
    }

    @Test(
        "a document type is refused",
        arguments: [
            "<!DOCTYPE a><a/>",
            "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
            "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
            "<!DOCTYPE a PUBLIC '-//X' 'http://127.0.0.1:9/x.dtd'><a/>",
            """
            <!DOCTYPE a [<!ENTITY a0 "lol"><!ENTITY a1 "&a0;&a0;&a0;&a0;&a0;&a0;&a0;&a0;&a0;&a0;">\
            <!ENTITY a2 "&a1;&a1;&a1;&a1;&a1;&a1;&a1;&a1;&a1;&a1;">]><a>&a2;</a>
            """,
            "<!DOCTYPE a [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/'>%p;]><a/>",
        ]
    )
    func doctype(text: String) {
        #expect(throws: Malformed("a document type")) { try read(text) }
    }

    @Test("a document that is too large or too deep is refused")
    func bounds() {
        func nested(_ depth: Int) -> String {
            String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        }
        #expect(throws: Never.self) { try read(nested(XMLElement.maximumDepth)) }
        #expect(throws: Malformed("too large")) { try read(nested(XMLElement.maximumDepth + 1)) }
        #expect(throws: Malformed("too large")) {
            try read("<a>" + String(repeating: "<b/>", count: XMLElement.maximumElements) + "</a>")
        }
        let attributes = (0...XMLElement.maximumAttributes).map { " a\($0)=''" }.joined()
        #expect(throws: Malformed("too large")) { try read("<a\(attributes)/>") }
        let element = "<b" + (0..<XMLElement.maximumAttributes).map { " a\($0)=''" }.joined() + "/>"
        let most = XMLElement.maximumAttributesInAll / XMLElement.maximumAttributes
        #expect(throws: Never.self) { try read("<a>\(String(repeating: element, count: most))</a>") }
        #expect(throws: Malformed("too large")) { try read("<a c=''>\(String(repeating: element, count: most))</a>") }
        let marks = "n" + String(repeating: "\u{323}\u{301}", count: 200)
        #expect(throws: Malformed("too large")) { try read("<\(marks)/>") }
        let name = String(repeating: "n", count: XMLReader.maximumName + 1)
        #expect(throws: Malformed("too large")) { try read("<\(name)/>") }
        #expect(throws: Malformed("too large")) { try read("<a \(name)=''/>") }
        #expect(throws: Malformed("too large")) { try XMLReader.read(Array("<a></a>".utf8), maximumLength: 6) }
    }

    @Test(
        "a document that is not well-formed is refused",
        arguments: [
            "", " ", "text", "<a>", "<a></b>", "<a/><b/>", "<a b=1/>", "<a b='' b=''/>", "<p:a/>", "<a>&x;</a>",
            "<a>\u{1}</a>",
            "<a>\u{FEFF}", "<?xml version='1.0' encoding='EBCDIC-FR'?><a/>",
        ]
    )
    func malformed(text: String) {
        let error = #expect(throws: Malformed.self) { try read(text) }
        #expect(error?.text != "too large")
    }

    @Test("bytes that are not UTF-8 are refused")
    func encoding() {
        #expect(throws: Malformed.self) {
            try XMLReader.read([0x3C, 0x61, 0x3E, 0xFF, 0x3C, 0x2F, 0x61, 0x3E], maximumLength: 99)
        }
    }
}
