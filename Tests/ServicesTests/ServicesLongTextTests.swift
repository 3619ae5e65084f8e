// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import TestSupport
import Testing
import Text

@testable import Antelope
@testable import EService
@testable import HTTP
@testable import MPin
@testable import Transfers

@Suite("Long texts of servers")
struct LongTextTests {
    /// A certificate description with these terms and this name.
    private static func description(_ terms: String, name: String = "", kind: UInt8 = 1) -> [UInt8] {
        let type = BERTLV(0x06, CertificateDescription.Kind.family + [kind])
        let fields = [(1, ""), (3, name), (5, terms)].map { number, text in
            BERTLV(0xA0 | number, [BERTLV(0x0C, Array(text.utf8))])
        }
        return BERTLV(0x30, [type] + fields).encoded
    }

    /// A packed ABI with one struct and one alias of these types.
    private static func abi(_ type: String, name: String = "a") -> [UInt8] {
        var writer = PackWriter()
        writer.counted(Array("eosio::abi/1.2".utf8))
        writer.varuint(1)
        for text in [name, type] { writer.counted(Array(text.utf8)) }
        writer.varuint(1)
        for text in ["s", ""] { writer.counted(Array(text.utf8)) }
        writer.varuint(1)
        for text in ["f", type] { writer.counted(Array(text.utf8)) }
        for _ in 0..<6 { writer.varuint(0) }
        return writer.bytes
    }

    private static func read(_ bytes: [UInt8]) {
        guard let abi = try? ABI(packed: bytes) else { return }
        for type in ["a", "s", "a[]", "s?"] { _ = try? abi.unpack([1, 1, 1, 1], as: type) }
    }

    private static let parsers: [(name: String, size: Int, parse: @Sendable (String) -> Void)] = [
        ("terms of usage", 90_000, { _ = try? CertificateDescription(description($0)) }),
        ("a purpose", 90_000, { _ = try? CertificateDescription(description("Gesch\u{E4}ftszweck:\n \($0) \n\n")) }),
        ("almost a purpose", 90_000, { _ = try? CertificateDescription(description("Verwendung der Daten\($0)")) }),
        ("the name of a service", 90_000, { _ = try? CertificateDescription(description("", name: $0)) }),
        ("a type of an ABI", 250_000, { read(abi($0)) }),
        ("an optional type of an ABI", 250_000, { read(abi("\($0)?")) }),
        ("an array of an ABI", 250_000, { read(abi("\($0)[]")) }),
        ("a name of an ABI", 250_000, { read(abi("a", name: $0)) }),
        (
            "a document", 500_000,
            { text in
                let root = try? XMLReader.read(Array("<a b='c'>\(text)</a>".utf8), maximumLength: 1 << 22)
                _ = root?.trimmed.isComparable
            }
        ),
        (
            "an element", 500_000,
            { text in
                _ = try? XMLReader.read(Array("<\(text)>".utf8), maximumLength: 1 << 22).only("b")
            }
        ),
        (
            "an attribute", 500_000,
            { text in
                _ = try? XMLReader.read(Array("<a b='\(text)'/>".utf8), maximumLength: 1 << 22).attributes["b"]
            }
        ),
        ("an address", 8000, { _ = WebAddress("https://a/\($0)") }),
        ("a reference", 8000, { _ = WebAddress("https://a/b")?.resolving($0) }),
        ("the address of a login server", 100_000, { _ = Backend("https://a/\($0)/", prefix: "rps") }),
        (
            "a header", 30_000,
            { text in
                let response = HTTPResponse(status: 200, headers: [(text, "a"), ("b", text)])
                _ = (response.header("b"), response.header(text))
            }
        ),
        ("a request to the port for metrics", 2000, { _ = MetricsRequest.answer(Array("GET \($0)\r\n\r\n".utf8)) }),
    ]

    @Test("a text of twice the length takes at most 2.5 times as long", .serialized, arguments: parsers.indices)
    func growth(parser: Int) async { #expect(await Growth.slowAlphabets(Self.parsers[parser]) == []) }

    @Test("a struct with many fields that are left out is too large, instead of slow")
    func extensions() throws {
        let fields = (0..<9000).map {
            JSON.object([.init("name", .string("f\($0)")), .init("type", .string("uint8$"))])
        }
        let abi = try ABI(
            .object([
                .init("version", .string("eosio::abi/1.2")),
                .init(
                    "structs",
                    .array([
                        .object([
                            .init("name", .string("s")), .init("base", .string("")), .init("fields", .array(fields)),
                        ])
                    ])
                ),
            ])
        )
        #expect(throws: Never.self) { try abi.unpack([], as: "s") }
        #expect(throws: Malformed("[1]: the value is too large")) { try abi.unpack([0xFF, 0x7F], as: "s[]") }
        let items = JSON.array([JSON](repeating: .object([]), count: 2))
        #expect(throws: Malformed("[1]: the value is too large")) { try abi.pack(items, as: "s[]") }
    }

    @Test("the purpose is found with an umlaut in either form, and ends at an empty line of any kind")
    func purpose() throws {
        for label in ["Gesch\u{E4}ftszweck:", "Gescha\u{308}ftszweck:"] {
            for end in ["\n", "\r\n", "\r", "\u{2028}"] {
                let terms = "a\(end)\(label)\(end)  one\(end)\u{A0}two \(end)\(end)three"
                #expect(try CertificateDescription(Self.description(terms)).purpose == "one\ntwo")
            }
        }
    }
}
