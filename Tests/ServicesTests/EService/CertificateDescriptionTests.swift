// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import ISO7816
import TestSupport
import Testing
import Text

@testable import EService

struct CertificateDescriptionTests {
    private static let utf8: UInt32 = 0x0C
    private static let printable: UInt32 = 0x13

    /// A description of this kind with fields: number, tag of the content, content.
    private static func encoded(kind: UInt8 = 1, _ fields: [(UInt32, UInt32, [UInt8])]) -> [UInt8] {
        let type = BERTLV(0x06, CertificateDescription.Kind.family + [kind])
        return BERTLV(0x30, [type] + fields.map { BERTLV(0xA0 | $0, [BERTLV($1, $2)]) }).encoded
    }

    private static func text(_ terms: String, kind: UInt8 = 1) -> [UInt8] {
        encoded(kind: kind, [(1, utf8, []), (3, utf8, []), (5, utf8, Array(terms.utf8))])
    }

    @Test("the description of Tests/PKI is read and belongs to the terminal certificate")
    func example() throws {
        let description = try CertificateDescription(TestPKI.file("description.der"))
        #expect(description.kind == .plain)
        #expect(description.issuerName == "badged test DV")
        #expect(description.issuerURL == "https://dv.example")
        #expect(description.subjectName == "Testdienst")
        #expect(description.subjectURL == "https://dienst.example")
        #expect(description.termsOfUsage.hasPrefix("Name, Anschrift und E-Mail-Adresse"))
        #expect(description.redirectURL == nil && description.communicationCertificates.isEmpty)
        #expect(description.purpose == "Test")
        #expect(CertificateDescription.belongs(description.encoded, to: try Fixtures.certificate("terminal")))
        #expect(!CertificateDescription.belongs(description.encoded, to: try Fixtures.certificate("dv")))
        let other = try CertificateDescription(Self.text("other"))
        #expect(!CertificateDescription.belongs(other.encoded, to: try Fixtures.certificate("terminal")))
    }

    @Test("all fields are read")
    func allFields() throws {
        let hashes = BERTLV(0x04, [1, 2]).encoded + BERTLV(0x04, [3]).encoded
        let description = try CertificateDescription(
            Self.encoded([
                (1, Self.utf8, Array("Ämter".utf8)), (2, Self.printable, Array("https://i".utf8)),
                (3, Self.utf8, [0x53]),
                (4, Self.printable, Array("https://s".utf8)), (5, Self.utf8, []),
                (6, Self.printable, Array("https://r".utf8)),
                (7, 0x31, hashes),
            ])
        )
        #expect(description.issuerName == "Ämter")
        #expect(description.redirectURL == "https://r")
        #expect(description.communicationCertificates == [[1, 2], [3]])
    }

    @Test("terms of usage in PDF become hexadecimal digits, those in HTML stay text")
    func kinds() throws {
        let pdf = Self.encoded(kind: 3, [(1, Self.utf8, []), (3, Self.utf8, []), (5, 0x04, [0x25, 0x0F, 0xAB])])
        #expect(try CertificateDescription(pdf).termsOfUsage == "250FAB")
        #expect(try CertificateDescription(pdf).purpose == "")
        let html = Self.encoded(kind: 2, [(1, Self.utf8, []), (3, Self.utf8, []), (5, 0x16, Array("<p>a".utf8))])
        #expect(try CertificateDescription(html).termsOfUsage == "<p>a")
    }

    @Test(
        "the purpose is the paragraph after the first known label",
        arguments: [
            ("Geschäftszweck:\nA\nB\n\nC", "A\nB"), ("x\r\nGeschäftszweck:\r\nA\r\n\r\nC", "A"),
            ("Geschäftszweck: A\nB", "A\nB"),
            ("Verwendung der Daten:\nB\n\nGeschäftszweck:\nA", "A"), ("Zweck des Auslesevorgangs:\n\n  A  \n\nB", "A"),
            ("Zweck der Datenübermittlung:\nA", "A"), ("Geschäftszweck:", ""), ("no label", ""), ("", ""),
        ]
    )
    func purpose(terms: String, purpose: String) throws {
        #expect(try CertificateDescription(Self.text(terms)).purpose == purpose)
    }

    @Test("control characters are dropped, except tabs and line ends")
    func controls() throws {
        let terms = "a\u{0}b\u{1B}[2Jc\td\r\ne\u{C}"
        let bytes = Self.encoded([
            (1, Self.utf8, Array("I\u{7}ssuer".utf8)), (3, Self.utf8, []),
            (4, Self.printable, Array("https://s\u{8}".utf8)),
            (5, Self.utf8, Array(terms.utf8)),
        ])
        let description = try CertificateDescription(bytes)
        #expect(description.issuerName == "Issuer" && description.subjectURL == "https://s")
        #expect(description.termsOfUsage == "ab[2Jc\td\r\ne")
        #expect(description.encoded == bytes, "the hash is made of the original bytes")
    }

    @Test("a description of more than 192 KiB is refused")
    func length() throws {
        let frame = Self.text("").count
        // Three lengths need three bytes more.
        let longest = String(repeating: "x", count: CertificateDescription.maximumLength - frame - 9)
        #expect(try CertificateDescription(Self.text(longest)).encoded.count == CertificateDescription.maximumLength)
        #expect(throws: Malformed("certificate description too long")) {
            try CertificateDescription(Self.text(longest + "x"))
        }
    }

    @Test(
        "an invalid description is refused",
        arguments: [
            [], [0x30, 0x00], [0x30, 0x03, 0x02, 0x01], text("x", kind: 4), text("x") + [0],
            encoded([(1, utf8, []), (3, utf8, [])]), encoded([(1, utf8, []), (5, utf8, [])]),
            encoded([(3, utf8, []), (5, utf8, [])]), encoded([(3, utf8, []), (1, utf8, []), (5, utf8, [])]),
            encoded([(1, utf8, []), (1, utf8, []), (3, utf8, []), (5, utf8, [])]),
            encoded([(1, printable, []), (3, utf8, []), (5, utf8, [])]),
            encoded([(1, utf8, [0xFF]), (3, utf8, []), (5, utf8, [])]),
            encoded([(1, utf8, []), (3, utf8, []), (5, utf8, [0xFF])]),
            encoded(kind: 3, [(1, utf8, []), (3, utf8, []), (5, utf8, [])]),
            encoded([(1, utf8, []), (3, utf8, []), (5, utf8, []), (7, 0x30, [])]),
            encoded([(1, utf8, []), (3, utf8, []), (5, utf8, []), (7, 0x31, [0x02, 0x01, 0x00])]),
            encoded([(1, utf8, []), (3, utf8, []), (5, utf8, []), (8, utf8, [])]),
        ] as [[UInt8]]
    )
    func refused(bytes: [UInt8]) {
        #expect(throws: Malformed.self) { try CertificateDescription(bytes) }
    }
}
