// SPDX-License-Identifier: Apache-2.0

/// DER as text. RFC 7468.
package struct PEM: Sendable {
    package static let certificate = PEM("CERTIFICATE")
    package static let publicKey = PEM("PUBLIC KEY")
    package static let revocationList = PEM("X509 CRL")

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
        let lines = text.split(whereSeparator: \.isNewline)
        guard let first = lines.firstIndex(where: { $0 == begin }),
            let last = lines[first...].firstIndex(where: { $0 == end })
        else { return nil }
        return Base64.standard.decode(lines[(first + 1)..<last].joined())
    }
}
