// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import EID
import ISO7816

/// What a service says of itself, bound to its certificate by a hash. TR-03110-4, 2.2.6.
package struct CertificateDescription: Sendable, Equatable {
    /// The last number of the object identifier, 0.4.0.127.0.7.3.1.3.1.n.
    package enum Kind: UInt8, Sendable, CaseIterable {
        case plain = 1
        case html
        case pdf

        static let family: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x03, 0x01, 0x03, 0x01]
    }

    package let kind: Kind
    package let issuerName: String
    package let issuerURL: String?
    package let subjectName: String
    package let subjectURL: String?
    /// The text of the terms of usage; of a PDF file its bytes in upper-case hexadecimal.
    package let termsOfUsage: String
    /// Why the service wants the data, cut out of the terms of usage, in the words of the service; empty when there is
    /// nothing of the kind. Found while it is read, not when it is asked for: long terms take a while to search.
    package let purpose: String
    package let redirectURL: String?
    /// Hashes of the TLS certificates that the service and its eID-Server may use, made with the hash function of the
    /// document verifier's certificate; empty when the description names none.
    package let communicationCertificates: [[UInt8]]
    /// DER, as the service sent it: PACE hands it to the keypad, and it is what is hashed.
    package let encoded: [UInt8]

    /// Bytes: terms of usage in PDF are some tens of KiB. All that a client is told of it fits in a line of 1 MiB, the
    /// terms twice, since the purpose is cut out of them, with an escape before each character.
    package static let maximumLength = 192 * 1024

    /// Reads the whole object.
    /// - Throws: `CVCertificateError.malformed`.
    package init(_ bytes: [UInt8]) throws(CVCertificateError) {
        guard bytes.count <= Self.maximumLength else { throw .malformed("certificate description too long") }
        let fields = try Self.reading { () throws(BERError) in
            let outer = try BERTLV(bytes)
            return outer.tag == 0x30 ? try outer.children : []
        }
        guard let type = fields.first, type.tag == 0x06, type.value.dropLast() == Kind.family[...],
            let kind = type.value.last.flatMap(Kind.init(rawValue:))
        else { throw .malformed("certificate description of no known kind") }
        let rest = fields.dropFirst()
        guard zip(rest, rest.dropFirst()).allSatisfy({ $0.tag < $1.tag }), rest.allSatisfy({ (0xA1...0xA7) ~= $0.tag })
        else { throw .malformed("certificate description with other fields than it should have") }
        func content(_ number: UInt32) throws(CVCertificateError) -> BERTLV? {
            guard let field = rest.first(where: { $0.tag == 0xA0 | number }) else { return nil }
            return try Self.reading { () throws(BERError) in try BERTLV(field.value) }
        }
        func text(_ number: UInt32, _ tag: UInt32) throws(CVCertificateError) -> String? {
            guard let object = try content(number) else { return nil }
            guard object.tag == tag, let text = Self.text(object.value) else {
                throw .malformed("certificate description with a field that is no text")
            }
            return text
        }
        guard let issuerName = try text(1, Self.utf8), let subjectName = try text(3, Self.utf8),
            let terms = try content(5)
        else { throw .malformed("certificate description without a field that it must have") }
        (self.kind, self.issuerName, self.subjectName) = (kind, issuerName, subjectName)
        issuerURL = try text(2, Self.printable)
        subjectURL = try text(4, Self.printable)
        redirectURL = try text(6, Self.printable)
        termsOfUsage = try Self.terms(terms, kind)
        purpose = kind == .pdf ? "" : Self.purpose(in: termsOfUsage)
        communicationCertificates = try Self.hashes(try content(7))
        encoded = bytes
    }

    private static let utf8: UInt32 = 0x0C
    private static let printable: UInt32 = 0x13

    private static func reading<T>(_ body: () throws(BERError) -> T) throws(CVCertificateError) -> T {
        do {
            return try body()
        } catch {
            throw .malformed("certificate description cannot be read: \(error)")
        }
    }

    /// Without control characters but for tabulators and line ends: nobody can be shown them.
    private static func text(_ bytes: [UInt8]) -> String? {
        String(validating: bytes.filter { $0 >= 0x20 || [0x09, 0x0A, 0x0D].contains($0) }, as: UTF8.self)
    }

    private static func terms(_ object: BERTLV, _ kind: Kind) throws(CVCertificateError) -> String {
        switch (kind, object.tag) {
        case (.pdf, 0x04):
            return object.value.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }
                .joined().uppercased()
        case (.plain, 0x0C), (.html, 0x0C), (.html, 0x16):
            guard let text = text(object.value) else { fallthrough }
            return text
        default:
            throw .malformed("terms of usage of another type than the description has")
        }
    }

    private static func hashes(_ set: BERTLV?) throws(CVCertificateError) -> [[UInt8]] {
        guard let set else { return [] }
        let members = try reading { () throws(BERError) in try set.children }
        guard set.tag == 0x31, members.allSatisfy({ $0.tag == 0x04 }) else {
            throw .malformed("communication certificates that are no set of hashes")
        }
        return members.map(\.value)
    }

    /// Does it belong to this terminal certificate? TR-03110-4, 2.2.6: its hash, with the hash function of the terminal's
    /// signatures, is in the certificate.
    package func belongs(to terminal: CVCertificate) -> Bool {
        guard let expected = terminal.descriptionHash, let digest = terminal.digest,
            let hash = try? digest.hash(encoded)
        else { return false }
        return hash == expected
    }

    private static func purpose(in terms: String) -> String {
        let lines = terms.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for label in labels {
            for (index, line) in lines.enumerated() {
                guard let found = line.indices.first(where: { line[$0...].hasPrefix(label) }) else { continue }
                let rest = [line[found...].dropFirst(label.count)] + lines[(index + 1)...]
                let paragraph = rest.map(trimmed).drop { $0.isEmpty }.prefix { !$0.isEmpty }
                return paragraph.joined(separator: "\n")
            }
        }
        return ""
    }

    /// What German issuers write above it.
    private static let labels = [
        "Geschäftszweck:", "Zweck des Auslesevorgangs:", "Verwendung der Daten:", "Zweck der Datenübermittlung:",
    ]

    private static func trimmed(_ line: Substring) -> String {
        String(line.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }
}
