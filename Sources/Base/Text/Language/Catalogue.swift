// SPDX-License-Identifier: Apache-2.0

/// The texts of one language, from a file that msgfmt has made. GNU gettext, "The Format of GNU MO Files".
///
/// What is not in the catalogue, and what has other placeholders, is English. So a catalogue that is broken or of another
/// version costs the translation and nothing else.
package struct Catalogue: Sendable {
    private let texts: [String: String]

    /// No translations.
    package static let english = Catalogue(texts: [:])
    /// The most texts of a catalogue.
    private static let maximumCount = 20_000
    /// The largest file in bytes.
    package static let maximumBytes = 4 << 20

    private init(texts: [String: String]) { self.texts = texts }

    /// Reads a file in the byte order of either kind; nil if it is no catalogue.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count <= Self.maximumBytes, bytes.count >= 20 else { return nil }
        let isLittle: Bool
        switch bytes.prefix(4) {
        case [0xDE, 0x12, 0x04, 0x95]: isLittle = true
        case [0x95, 0x04, 0x12, 0xDE]: isLittle = false
        default: return nil
        }
        func word(_ offset: Int) -> Int? {
            guard offset >= 0, offset <= bytes.count - 4 else { return nil }
            let part = bytes[offset..<offset + 4]
            return (isLittle ? Array(part.reversed()) : Array(part)).reduce(0) { $0 << 8 | Int($1) }
        }
        func text(_ entry: Int) -> String? {
            guard let length = word(entry), let start = word(entry + 4), start <= bytes.count,
                length <= bytes.count - start
            else { return nil }
            return String(validating: bytes[start..<start + length], as: UTF8.self)
        }
        guard let count = word(8), let originals = word(12), let translations = word(16),
            count <= Self.maximumCount, word(4).map({ $0 >> 16 == 0 }) == true
        else { return nil }
        var texts: [String: String] = [:]
        for index in 0..<count {
            guard let key = text(originals + 8 * index), let value = text(translations + 8 * index) else { return nil }
            // The empty key has the header.
            if !key.isEmpty, !value.isEmpty { texts[key] = value }
        }
        self.texts = texts
    }

    /// The text in this language, or in English.
    package func text(_ phrase: Phrase) -> String { phrase.text { texts[$0] } }
}
