// SPDX-License-Identifier: Apache-2.0

/// A text for people as it stands in the sources, in English: `"\(count) tries are left"` is the key
/// `{0} tries are left` of a catalogue, with one value.
package struct Phrase: ExpressibleByStringInterpolation, Sendable {
    /// The text with a placeholder for each value. `{` and `}` of the text itself are not allowed.
    package let key: String
    package let values: [String]

    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var key = ""
        fileprivate var values: [String] = []

        package init(literalCapacity: Int, interpolationCount: Int) { key.reserveCapacity(literalCapacity) }

        package mutating func appendLiteral(_ literal: String) { key += literal }

        package mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            key += "{\(values.count)}"
            values.append(value.description)
        }
    }

    package init(stringLiteral key: String) {
        self.key = key
        values = []
    }

    package init(stringInterpolation parts: StringInterpolation) {
        key = parts.key
        values = parts.values
    }

    private init(_ key: String, _ values: [String]) {
        self.key = key
        self.values = values
    }

    /// The phrase with the values of a text that was made from it; nil if the text was made from another one. Of
    /// several readings the first value that is shortest counts.
    package func read(_ text: String) -> Phrase? {
        let literals = key.utf8.split(separator: UInt8(ascii: "{"), omittingEmptySubsequences: false).enumerated().map {
            $0 == 0 ? Array($1) : Array($1.drop { $0 != UInt8(ascii: "}") }.dropFirst())
        }
        guard let first = literals.first, let last = literals.last, literals.count == values.count + 1 else {
            return nil
        }
        var rest = Array(text.utf8)[...]
        guard !values.isEmpty else { return rest.elementsEqual(first) ? self : nil }
        guard rest.count >= first.count + last.count, rest.starts(with: first), rest.suffix(last.count) == last[...]
        else { return nil }
        rest = rest.dropFirst(first.count).dropLast(last.count)
        var found: [String] = []
        for literal in literals.dropFirst().dropLast() {
            guard !literal.isEmpty, let place = rest.firstRange(of: literal) else { return nil }
            found.append(String(decoding: rest[..<place.lowerBound], as: UTF8.self))
            rest = rest[place.upperBound...]
        }
        return Phrase(key, found + [String(decoding: rest, as: UTF8.self)])
    }

    /// Puts the values into a text, at `{0}`, `{1}` and so on. They are not looked at again.
    /// - Returns: nil if the text has a placeholder without a value, or lacks one.
    func filled(_ text: String) -> String? {
        guard !values.isEmpty else { return text }
        var result: [UInt8] = []
        var seen: Set<Int> = []
        var rest = text.utf8[...]
        while let open = rest.firstIndex(of: UInt8(ascii: "{")) {
            result += rest[..<open]
            guard let close = rest[open...].firstIndex(of: UInt8(ascii: "}")),
                let number = Int(String(decoding: rest[rest.index(after: open)..<close], as: UTF8.self)),
                values.indices.contains(number)
            else { return nil }
            seen.insert(number)
            result += values[number].utf8
            rest = rest[rest.index(after: close)...]
        }
        guard seen.count == values.count else { return nil }
        return String(decoding: result + rest, as: UTF8.self)
    }
}
