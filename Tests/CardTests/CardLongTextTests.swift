// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import TestSupport
import Testing
import Text

@testable import Document
@testable import MobileDocument

@Suite("Long texts of cards and phones")
struct LongTextTests {
    /// Compares texts, and uses them as keys.
    private static func use(_ texts: [String?]) { _ = (Set(texts), texts.first == texts.last) }

    /// A text in parts, each of which has few marks.
    private static func inParts(_ text: String) -> [UInt8] {
        let scalars = Array(text.unicodeScalars)
        let parts = stride(from: 0, to: scalars.count, by: 100).flatMap { start in
            let part = String.UnicodeScalarView(scalars[start..<min(start + 100, scalars.count)])
            return CBORValue.text(String(part)).encoding
        }
        return [0x7F] + parts + [0xFF]
    }

    private static func readResponse(_ docType: String) {
        let documents = ["a", "b"].map { end -> CBORValue in
            ["docType": .text(docType + end), "issuerSigned": [:], "deviceSigned": [:]]
        }
        let response: CBORValue = ["version": "1.0", "status": 0, "documents": .array(documents)]
        let documentTypes = try? DeviceResponse(Secret(response.encoding)).documents.map(\.docType)
        use(documentTypes ?? [])
    }

    /// Reads what an issuer has signed, with this text for each name.
    private static func readObject(_ text: String) {
        let name = CBORValue.text(text)
        let key: CBORValue = [
            "deviceKey": [:],
            "keyAuthorizations": [
                "nameSpaces": .array([name, "b"]), "dataElements": .map([(name, .array([name, "b"]))]),
            ],
        ]
        let day: CBORValue = .tag(0, "2026-11-01T00:00:00Z")
        let object: CBORValue = [
            "version": "1.0", "digestAlgorithm": "SHA-256", "valueDigests": .map([(name, .map([(1, .bytes([1]))]))]),
            "deviceKeyInfo": key, "docType": name,
            "validityInfo": ["signed": day, "validFrom": day, "validUntil": day],
        ]
        guard let item = try? CBOR(object.encoding), let object = try? MobileSecurityObject(item) else { return }
        _ = object.authorizes(text, in: text)
        use([object.docType, text])
    }

    /// Reads the name of a country in a string of this type.
    private static func readName(_ type: UInt32, _ text: [UInt8]) {
        let country = BERTLV(0x30, [BERTLV(0x06, [0x55, 0x04, 0x06]), BERTLV(type, text)])
        guard let name = try? DistinguishedName(BERTLV(0x30, [BERTLV(0x31, [country])])) else { return }
        use([name.text, name.country])
    }

    private static let parsers: [(name: String, size: Int, parse: @Sendable (String) -> Void)] = [
        ("a text of CBOR", 250_000, { use([try? CBOR(CBORValue.text("a\($0)").encoding).text, "a"]) }),
        ("a text of CBOR in parts", 250_000, { use([try? CBOR(inParts("a\($0)")).text, "a"]) }),
        ("the types of two documents", 250_000, { readResponse("a\($0)") }),
        ("the names that an issuer has signed", 250_000, { readObject("a\($0)") }),
        ("the version of an engagement", 2000, { _ = try? DeviceEngagement(CBORValue.map([(0, .text($0))]).encoding) }),
        (
            "the name of a holder", 160_000,
            { text in
                let file = BERTLV(0x6B, [BERTLV(0x5F0E, Array("a\(text)".utf8))]).encoded
                use([(try? PersonalDetails(file))?.fullName, "a"])
            }
        ),
        (
            "the name of a person to notify", 160_000,
            { text in
                let person = BERTLV(0xA1, [BERTLV(0x5F51, Array("a\(text)<b".utf8))])
                use([(try? PersonsToNotify(BERTLV(0x70, [person]).encoded))?.persons.first?.name, "a"])
            }
        ),
        ("the country of a certificate", 16_000, { readName(0x0C, Array("a\($0)".utf8)) }),
        (
            "the country of a certificate in UTF-16", 16_000,
            { readName(0x1E, "a\($0)".utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }) }
        ),
        (
            "the label of an object in PEM", 250_000,
            { text in
                let contents = PEM.contents(of: Array("-----BEGIN \(text)-----\nAA==\n-----END \(text)-----\n".utf8))
                use(contents.objects.map(\.label) + Array(contents.damaged))
            }
        ),
    ]

    @Test("a text of twice the length takes at most 2.5 times as long", .serialized, arguments: parsers.indices)
    func growth(parser: Int) async { #expect(await Growth.slowAlphabets(Self.parsers[parser]) == []) }
}
