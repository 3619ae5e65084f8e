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

    /// Returns every object in a text, whatever stands between them.
    package static func objects(in text: [UInt8]) -> [Object] {
        let begin = Array("-----BEGIN ".utf8)
        let end = Array("-----END ".utf8)
        var objects: [Object] = []
        var open: (label: String, digits: [UInt8])?
        for line in text.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let line = Array(line.drop { $0 == 0x20 || $0 == 0x09 })
            if line.starts(with: begin), let dash = line[begin.count...].firstIndex(of: UInt8(ascii: "-")) {
                open = (String(decoding: line[begin.count..<dash], as: UTF8.self), [])
            } else if line.starts(with: end), let object = open {
                let digits = String(decoding: object.digits, as: UTF8.self)
                objects.append(Object(label: object.label, der: Base64.standard.decode(digits)))
                open = nil
            } else {
                open?.digits += line.filter { $0 > 0x20 }
            }
        }
        return objects
    }
}
