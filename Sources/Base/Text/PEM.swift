// SPDX-License-Identifier: Apache-2.0

/// DER as text. RFC 7468.
package struct PEM: Sendable {
    package static let certificateLabel = "CERTIFICATE"
    package static let certificate = PEM(certificateLabel)
    package static let publicKey = PEM("PUBLIC KEY")
    package static let revocationListLabel = "X509 CRL"
    package static let revocationList = PEM(revocationListLabel)

    private let begin: String
    private let end: String

    private init(_ label: String) { (begin, end) = ("-----BEGIN \(label)-----", "-----END \(label)-----") }

    /// Encodes DER in lines of 64 characters.
    package func encode(_ der: [UInt8]) -> String {
        var lines = [begin]
        var text = Substring(Base64.standard.encode(der))
        while !text.isEmpty {
            lines.append(String(text.prefix(64)))
            text = text.dropFirst(64)
        }
        return (lines + [end, ""]).joined(separator: "\n")
    }

    /// Returns the DER of the first object of this kind in a text; nil if there is none.
    package func decode(_ text: String) -> [UInt8]? {
        let lines = text.utf8.split { $0 == 0x0A || $0 == 0x0D }
        guard let first = lines.firstIndex(where: { $0.elementsEqual(begin.utf8) }),
            let last = lines[first...].firstIndex(where: { $0.elementsEqual(end.utf8) })
        else { return nil }
        return Base64.standard.decode(String(decoding: lines[(first + 1)..<last].joined(), as: UTF8.self))
    }

    /// An object in a text of many.
    package struct Object: Sendable, Equatable {
        /// The word between the dashes, such as `CERTIFICATE`.
        package let label: String
        /// nil: what is between the dashes is not base64.
        package let der: [UInt8]?
    }

    /// What is in a text.
    package struct Contents: Sendable {
        package fileprivate(set) var objects: [Object] = []
        /// The words between the dashes of lines that are damaged, or that have lost their other line; empty for what
        /// is no such word. An object may be missing there.
        package fileprivate(set) var damaged: Set<String> = []

        /// Whether an object may be missing that is no certificate.
        package var mayHideList: Bool { damaged.contains { !$0.hasSuffix(certificateLabel) } }
    }

    /// Returns every object in a text, whatever stands between them.
    package static func objects(in text: [UInt8]) -> [Object] { contents(of: text).objects }

    /// Returns every object in a text, whatever stands between them, and what is damaged.
    package static func contents(of text: [UInt8]) -> Contents {
        let begin = Array("-----BEGIN ".utf8)
        let end = Array("-----END ".utf8)
        var contents = Contents()
        var open: (label: String, digits: [UInt8])?
        for line in text.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let line = Array(line.trimmed { $0 == 0x20 || $0 == 0x09 })
            if line.starts(with: begin), let dash = line[begin.count...].firstIndex(of: UInt8(ascii: "-")) {
                if let open { contents.damaged.insert(open.label) }
                let label = label(line[begin.count..<dash])
                if !line[dash...].elementsEqual(dashes) { contents.damaged.insert(label) }
                open = (label, [])
            } else if line.starts(with: end) {
                let words = line.dropFirst(end.count)
                let name = words.prefix { $0 != UInt8(ascii: "-") }
                let label = label(name)
                if open?.label != label || !words.dropFirst(name.count).elementsEqual(dashes) {
                    contents.damaged.insert(label)
                }
                if let object = open {
                    let digits = String(decoding: object.digits, as: UTF8.self)
                    contents.objects.append(Object(label: object.label, der: Base64.standard.decode(digits)))
                }
                open = nil
            } else if open != nil {
                open?.digits += line.filter { $0 > 0x20 }
            } else if isDamaged(line) {
                contents.damaged.insert(label(line.filter { $0 != UInt8(ascii: "-") }[...]))
            } else if !isText(line) {
                contents.damaged.insert("")
            }
        }
        if let open { contents.damaged.insert(open.label) }
        return contents
    }

    private static let dashes = Array("-----".utf8)

    /// The word between the dashes; empty if it is none: long, or with other characters than those of ASCII, whose
    /// comparison as text would take time.
    private static func label(_ bytes: ArraySlice<UInt8>) -> String {
        let isWord = bytes.count <= 64 && bytes.allSatisfy { (0x20...0x7E).contains($0) }
        return isWord ? String(decoding: bytes, as: UTF8.self) : ""
    }

    /// Whether a line outside of an object may have been its first or last one.
    private static func isDamaged(_ line: [UInt8]) -> Bool {
        func isLetter(_ byte: UInt8?) -> Bool { byte.map { (0x41...0x5A).contains($0 & 0xDF) } ?? false }
        return line.starts(with: dashes) && isLetter(line.dropFirst(dashes.count).first)
            || line.suffix(dashes.count).elementsEqual(dashes) && isLetter(line.dropLast(dashes.count).last)
    }

    /// Whether bytes have no control characters but those of text.
    package static func isText(_ bytes: some Sequence<UInt8>) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || (0x09...0x0D).contains($0) }
    }
}
