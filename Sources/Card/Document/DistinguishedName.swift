// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Text

/// The name of a holder or issuer of certificates. Names are equal if they differ only in case, in spaces, or in the
/// type of the string. RFC 5280 7.1.
package struct DistinguishedName: Sendable, Hashable {
    /// One attribute: the content of its object identifier, and its text.
    private struct Attribute: Sendable, Hashable, Comparable {
        let type: [UInt8]
        /// Lower case, single spaces.
        let folded: [UInt8]

        static func < (left: Attribute, right: Attribute) -> Bool {
            left.type == right.type
                ? left.folded.lexicographicallyPrecedes(right.folded) : left.type.lexicographicallyPrecedes(right.type)
        }
    }

    private let parts: [[Attribute]]
    /// The name for people, such as `C=UT, O=..., CN=...`.
    package let text: String
    /// The country, upper case; nil if the name has none.
    package let country: String?
    /// The state or province in lower case; nil if the name has none.
    let state: [UInt8]?

    package static func == (left: DistinguishedName, right: DistinguishedName) -> Bool { left.parts == right.parts }
    package func hash(into hasher: inout Hasher) { hasher.combine(parts) }

    /// Whether a name has the same parts, in any order. Some signers write them the other way round.
    func hasParts(of other: DistinguishedName) -> Bool {
        parts.count == other.parts.count && Set(parts) == Set(other.parts)
    }

    /// The maximum number of attributes.
    private static let maximumCount = 32

    /// Reads an RDNSequence.
    init(_ object: BERTLV) throws(Malformed) {
        guard object.tag == 0x30 else { throw .invalidTag }
        var parts: [[Attribute]] = []
        var words: [String] = []
        var country: String?
        for set in try object.children {
            guard set.tag == 0x31 else { throw .invalidTag }
            var attributes: [Attribute] = []
            for pair in try set.children {
                guard pair.tag == 0x30, words.count < Self.maximumCount else { throw .invalidTag }
                let fields = try pair.children
                guard fields.count == 2, fields[0].tag == 0x06 else { throw .invalidTag }
                let text = Self.text(fields[1])
                attributes.append(Attribute(type: fields[0].value, folded: Self.fold(text)))
                words.append("\(Self.names[fields[0].value] ?? Hex.encode(fields[0].value))=\(text)")
                if fields[0].value == Self.countryName, country == nil { country = text.uppercased() }
            }
            parts.append(attributes.sorted())
        }
        self.parts = parts
        text = words.joined(separator: ", ")
        self.country = country
        state = parts.joined().first { $0.type == Self.stateName }?.folded
    }

    private static func text(_ value: BERTLV) -> String {
        switch value.tag {
        case 0x1E:
            let units = stride(from: 0, to: value.value.count - 1, by: 2).map {
                UInt16(value.value[$0]) << 8 | UInt16(value.value[$0 + 1])
            }
            let text = String(decoding: units, as: UTF16.self)
            if text.isComparable { return text }
        default: break
        }
        return DocumentField.decode(value.value)
    }

    private static func fold(_ text: String) -> [UInt8] {
        Array(text.lowercased().utf8.split(separator: 0x20).joined(separator: [0x20]))
    }

    private static let countryName: [UInt8] = [0x55, 0x04, 0x06]
    private static let stateName: [UInt8] = [0x55, 0x04, 0x08]
    private static let names: [[UInt8]: String] = [
        countryName: "C", [0x55, 0x04, 0x0A]: "O", [0x55, 0x04, 0x0B]: "OU", [0x55, 0x04, 0x03]: "CN",
        [0x55, 0x04, 0x05]: "serialNumber", [0x55, 0x04, 0x07]: "L", stateName: "ST",
    ]
}
