// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// One entry of `simulator` or `card` in SET_CARD. Each function throws `Malformed` with the name of
/// the entry and what is wrong with it.
package struct CardEntry: Sendable {
    /// The maximum length of an array, and of a string in bytes.
    private static let maximumEntries = 256
    private static let maximumBytes = 65_535

    package let name: String
    /// nil: the entry is missing.
    package let json: JSON?

    package init(_ name: String, _ json: JSON?) {
        self.name = name
        self.json = json
    }

    /// The member of an object.
    package subscript(_ key: String) -> CardEntry { CardEntry("\(name).\(key)", json?[key]) }

    /// The members of an object, in their order.
    package var members: [(key: String, entry: CardEntry)] {
        (json?.members ?? []).map { ($0.key, CardEntry("\(name).\($0.key)", $0.value)) }
    }

    /// The objects of an array; none if the entry is missing.
    package func objects() throws(Malformed) -> [CardEntry] {
        guard let json else { return [] }
        guard let elements = json.array else { throw wrong("is not an array") }
        guard elements.count <= Self.maximumEntries else {
            throw wrong("has more than \(Self.maximumEntries) entries")
        }
        let entries = elements.enumerated().map { CardEntry("\(name)[\($0)]", $1) }
        for entry in entries where entry.json?.members == nil { throw entry.wrong("is not an object") }
        return entries
    }

    /// Hexadecimal digits as bytes; with `count`, exactly that many.
    package func bytes(_ count: Int? = nil) throws(Malformed) -> [UInt8] {
        guard let json else { throw wrong("is missing") }
        guard let text = json.string else { throw wrong("is not a string") }
        guard text.utf8.count.isMultiple(of: 2) else { throw wrong("has an odd number of digits") }
        guard text.utf8.count <= Self.maximumBytes * 2 else {
            throw wrong("is longer than \(Self.maximumBytes) bytes")
        }
        guard let bytes = Hex.decode(text) else { throw wrong("is not hexadecimal") }
        if let count, bytes.count != count {
            throw wrong("is not \(count) byte\(count == 1 ? "" : "s") in hexadecimal")
        }
        return bytes
    }

    /// A secret of decimal digits.
    package func digits(_ count: Int) throws(Malformed) -> SecretBox {
        guard let text = json?.string, text.utf8.count == count, text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { throw wrong("is not a string of \(count) digits") }
        return SecretBox(Secret(text.utf8))
    }

    /// A whole number in the range.
    package func int(_ range: ClosedRange<Int>) throws(Malformed) -> Int {
        guard let json else { throw wrong("is missing") }
        guard let value = json.int, range.contains(value) else {
            throw wrong("is not a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    package func bool() throws(Malformed) -> Bool {
        guard let value = json?.bool else { throw wrong("is not true or false") }
        return value
    }

    /// The error for this entry.
    package func wrong(_ what: String) -> Malformed { Malformed("\(name) \(what)") }
}
