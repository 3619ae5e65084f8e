// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
package import EID
import ISO7816
package import Text

/// The description of a service, bound to its terminal certificate by a hash. TR-03110-4, 2.2.6.
package struct CertificateDescription: Sendable, Equatable {
    /// The last number of the object identifier, 0.4.0.127.0.7.3.1.3.1.n.
    package enum Kind: UInt8, Sendable, CaseIterable {
        case plain = 1
        case html
        case pdf

        static let family = OID.certificateExtension + [1]
    }

    package let kind: Kind
    package let issuerName: String
    package let issuerURL: String?
    package let subjectName: String
    package let subjectURL: String?
    /// The text of the terms of usage; for a PDF file its bytes as upper-case hexadecimal digits.
    package let termsOfUsage: String
    /// Why the service requests the data: a paragraph of the terms of usage; empty when they have none.
    package let purpose: String
    package let redirectURL: String?
    /// Hashes of the TLS certificates that the service and its eID-Server may use; empty when the description names none.
    /// The hash function is that of the document verifier's certificate.
    package let communicationCertificates: [[UInt8]]
    /// The DER encoding that the service sent. It is hashed, and a reader with a keypad shows it.
    package let encoded: [UInt8]

    /// The maximum length in bytes. A client gets the description in a line of at most 1 MiB. In the worst case this
    /// line contains the terms twice, also as the purpose, with every character escaped. Real descriptions have some
    /// tens of KiB.
    package static let maximumLength = 192 * 1024

    /// Reads the encoding.
    /// - Throws: `Malformed`.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumLength else { throw Malformed("certificate description too long") }
        let fields = try Malformed.at(Self.name) { () throws(Malformed) in
            let outer = try BERTLV(bytes)
            return outer.tag == 0x30 ? try outer.children : []
        }
        guard let type = fields.first, type.tag == 0x06, type.value.dropLast() == Kind.family[...],
            let kind = type.value.last.flatMap(Kind.init(rawValue:))
        else { throw Malformed("certificate description of no known kind") }
        let tagged = fields.dropFirst()
        guard zip(tagged, tagged.dropFirst()).allSatisfy({ $0.tag < $1.tag }),
            tagged.allSatisfy({ (0xA1...0xA7) ~= $0.tag })
        else { throw Malformed("certificate description with unexpected fields") }
        func content(_ number: UInt32) throws(Malformed) -> BERTLV? {
            guard let field = tagged.first(where: { $0.tag == 0xA0 | number }) else { return nil }
            return try Malformed.at(Self.name, BERTLV(field.value))
        }
        func text(_ number: UInt32, _ tag: UInt32) throws(Malformed) -> String? {
            guard let object = try content(number) else { return nil }
            guard object.tag == tag, let text = Self.text(object.value) else {
                throw Malformed("certificate description with a field that is not a text")
            }
            return text
        }
        guard let issuerName = try text(1, Self.utf8), let subjectName = try text(3, Self.utf8),
            let terms = try content(5)
        else { throw Malformed("certificate description without a mandatory field") }
        self.kind = kind
        self.issuerName = issuerName
        self.subjectName = subjectName
        issuerURL = try text(2, Self.printable)
        subjectURL = try text(4, Self.printable)
        redirectURL = try text(6, Self.printable)
        termsOfUsage = try Self.terms(terms, kind)
        purpose = kind == .pdf ? "" : Self.purpose(in: termsOfUsage)
        communicationCertificates = try Self.hashes(try content(7))
        encoded = bytes
    }

    private static let name = "certificate description"
    private static let utf8: UInt32 = 0x0C
    private static let printable: UInt32 = 0x13

    /// Decodes UTF-8 and drops control characters other than tabs and line ends, since they cannot be shown.
    private static func text(_ bytes: [UInt8]) -> String? {
        String(validating: bytes.filter { $0 >= 0x20 || [0x09, 0x0A, 0x0D].contains($0) }, as: UTF8.self)
    }

    private static func terms(_ object: BERTLV, _ kind: Kind) throws(Malformed) -> String {
        switch (kind, object.tag) {
        case (.pdf, 0x04):
            return Hex.encode(object.value).uppercased()
        case (.plain, 0x0C), (.html, 0x0C), (.html, 0x16):
            guard let text = text(object.value) else { fallthrough }
            return text
        default:
            throw Malformed("terms of usage of another type than the description has")
        }
    }

    private static func hashes(_ set: BERTLV?) throws(Malformed) -> [[UInt8]] {
        guard let set else { return [] }
        let members = try Malformed.at(name, set.children)
        guard set.tag == 0x31, members.allSatisfy({ $0.tag == 0x04 }) else {
            throw Malformed("communication certificates that are not a set of hashes")
        }
        return members.map(\.value)
    }

    /// Whether the terminal certificate holds the hash of this encoding of a description. The hash function is that of the
    /// terminal's signatures. TR-03110-4, 2.2.6.
    package static func belongs(_ bytes: [UInt8], to terminal: CVCertificate) -> Bool {
        guard let expected = terminal.descriptionHash, let digest = terminal.digest,
            let hash = try? digest.hash(bytes)
        else { return false }
        return hash == expected
    }

    /// The paragraph below or behind the first of the labels.
    private static func purpose(in terms: String) -> String {
        let scalars = Array(terms.unicodeScalars)
        for label in labels {
            guard let place = scalars.firstPlace(of: label.unicodeScalars) else { continue }
            let rest = scalars[(place + label.unicodeScalars.count)...]
            let lines = lines(of: rest).map { $0.trimmed(where: \.properties.isWhitespace) }
            let paragraph = lines.drop { $0.isEmpty }.prefix { !$0.isEmpty }
            return String(String.UnicodeScalarView(paragraph.joined(separator: ["\n"])))
        }
        return ""
    }

    private static func lines(of scalars: ArraySlice<Unicode.Scalar>) -> [ArraySlice<Unicode.Scalar>] {
        var lines: [ArraySlice<Unicode.Scalar>] = []
        var start = scalars.startIndex
        for index in scalars.indices where isLineEnd(scalars[index]) {
            let isInPair = scalars[index] == "\n" && index > scalars.startIndex && scalars[index - 1] == "\r"
            if !isInPair { lines.append(scalars[start..<index]) }
            start = index + 1
        }
        return lines + [scalars[start...]]
    }

    private static func isLineEnd(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0A...0x0D, 0x85, 0x2028, 0x2029: true
        default: false
        }
    }

    /// The headings that German issuers write above the purpose. An umlaut is one scalar, or a letter with a mark.
    private static let labels = [
        "Gesch\u{E4}ftszweck:", "Gescha\u{308}ftszweck:", "Zweck des Auslesevorgangs:", "Verwendung der Daten:",
        "Zweck der Daten\u{FC}bermittlung:", "Zweck der Datenu\u{308}bermittlung:",
    ]
}
