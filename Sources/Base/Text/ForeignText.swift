// SPDX-License-Identifier: Apache-2.0

/// A unit in which text from outside is parsed: a byte, or a scalar.
///
/// A `Character` may be as long as the text. A step back over a flag or a mark looks at the whole run before it, so
/// `last`, `reversed` or `hasSuffix` of a `String` in a loop take quadratic time.
package protocol TextUnit: Equatable {}

extension UInt8: TextUnit {}
extension Unicode.Scalar: TextUnit {}

extension BidirectionalCollection where Element: TextUnit {
    /// Without the units at both ends that `isBlank` accepts.
    package func trimmed(where isBlank: (Element) -> Bool) -> SubSequence {
        drop(while: isBlank).trimmedEnd(where: isBlank)
    }

    /// Without the units at the end that `isBlank` accepts.
    package func trimmedEnd(where isBlank: (Element) -> Bool) -> SubSequence {
        var end = endIndex
        while end > startIndex, case let last = index(before: end), isBlank(self[last]) { end = last }
        return self[..<end]
    }

    package func ends(with suffix: some BidirectionalCollection<Element>) -> Bool {
        reversed().starts(with: suffix.reversed())
    }
}

extension RandomAccessCollection where Element: TextUnit {
    /// Where `part` begins for the first time.
    package func firstPlace(of part: some Collection<Element>) -> Index? {
        indices.first { self[$0...].starts(with: part) }
    }
}

/// A limit for combining marks without a letter between them.
///
/// `==`, `hash` and `switch` of a `String` sort such a run, in quadratic time. A text with this limit can be compared and
/// can be the key of a dictionary. Unicode Standard Annex 15, Stream-Safe Text Format, which has 30.
package struct MarkLimit {
    private static let maximum = 255

    private var count = 0

    package init() {}

    /// Counts the next scalar of a text.
    /// - Returns: false if the run is too long.
    package mutating func admits(_ scalar: Unicode.Scalar) -> Bool {
        // The first combining mark is U+0300.
        let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
        count = isMark ? count + 1 : 0
        return count <= Self.maximum
    }
}

extension StringProtocol {
    /// Whether the text can be compared in linear time: it has no endless run of combining marks.
    package var isComparable: Bool {
        var limit = MarkLimit()
        return unicodeScalars.allSatisfy { limit.admits($0) }
    }

    package var isASCII: Bool { utf8.allSatisfy { $0 < 0x80 } }

    /// The text with a question mark instead of each byte that is not ASCII.
    package var asciiOnly: String {
        isASCII ? String(self) : String(decoding: utf8.map { $0 < 0x80 ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }
}

extension Unicode.Scalar {
    /// Whether the scalar can control a terminal, or forge or hide a line: control and direction characters, line
    /// separators.
    package var isControl: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}

extension StringProtocol {
    /// What a stranger says, as a quotation for a sentence of ours: one line of at most `longest` scalars, without control
    /// and direction characters, without quotation marks that would end it, and with two marks on a letter at most.
    package func quoted(longest: Int = 200) -> String {
        var text = ""
        var count = 0
        var marks = 0
        var isBlank = true
        for scalar in unicodeScalars {
            let category = scalar.properties.generalCategory
            if scalar.properties.isWhitespace || category == .control {
                if !isBlank { text.unicodeScalars.append(" ") }
                isBlank = true
                continue
            }
            if scalar.isControl { continue }
            guard count < longest else { return "\"\(text)...\"" }
            let isMark = [.nonspacingMark, .enclosingMark, .spacingMark].contains(category)
            marks = isMark ? marks + 1 : 0
            if isMark, isBlank || marks > 2 { continue }
            let isQuotation =
                [.initialPunctuation, .finalPunctuation].contains(category)
                || scalar.properties.isQuotationMark
            text.unicodeScalars.append(isQuotation ? "'" : scalar)
            isBlank = false
            count += 1
        }
        return "\"" + String(String.UnicodeScalarView(text.unicodeScalars.trimmedEnd { $0 == " " })) + "\""
    }
}
