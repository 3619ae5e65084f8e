// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// A value of badged.conf(5) and its position in the file, for messages. The forms that several sections have are here.
package struct ConfigurationValue {
    package let text: String
    let place: String

    package init(_ text: String, _ place: String) { (self.text, self.place) = (text, place) }

    package func refuse(_ allowed: String) -> StartError {
        .inConfiguration("\(place) cannot be '\(Self.shown(text))'", hint: "allowed: \(allowed)")
    }

    /// A value as messages repeat it: an address without its name and password.
    package static func shown(_ text: String) -> String {
        let bytes = Array(text.utf8)
        guard let at = bytes.lastIndex(of: UInt8(ascii: "@")) else { return text }
        let scheme = Array("://".utf8)
        let start = bytes.indices.first { bytes[$0...].starts(with: scheme) }.map { $0 + scheme.count } ?? 0
        guard start < at, bytes[start..<at].contains(UInt8(ascii: ":")) else { return text }
        return String(decoding: bytes[..<start], as: UTF8.self) + "..." + String(decoding: bytes[at...], as: UTF8.self)
    }

    package func bool() throws(StartError) -> Bool {
        switch text.lowercased() {
        case "yes", "true", "on", "1": true
        case "no", "false", "off", "0": false
        default: throw refuse("yes, no")
        }
    }

    package func number(in range: ClosedRange<Int>) throws(StartError) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw refuse("a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    package func word<Word: RawRepresentable & CaseIterable>() throws(StartError) -> Word
    where Word.RawValue == String {
        guard let word = Word(rawValue: text) else {
            throw refuse(Word.allCases.map(\.rawValue).joined(separator: ", "))
        }
        return word
    }

    package func absolutePath() throws(StartError) -> String {
        guard text.hasPrefix("/") else { throw refuse("a path that begins with /") }
        return text
    }

    /// The words before and after each comma.
    var words: [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map { String(INIFile.trim($0)) }
    }

    /// The words between commas; none for an empty value.
    func list() throws(StartError) -> [String] {
        guard !text.isEmpty else { return [] }
        guard !words.contains("") else { throw refuse("a list with one comma between two words") }
        return words
    }

    /// A point of a curve with 256 bits: 02 or 03, and x. SEC 1, 2.3.3.
    static func compressedKey(_ word: String) -> [UInt8]? {
        guard let key = Hex.decode(word, limit: 33), key.count == 33, key[0] == 2 || key[0] == 3 else { return nil }
        return key
    }

    func permissions() throws(StartError) -> Permissions {
        if text == "none" { return [] }
        var permissions: Permissions = []
        for word in words {
            guard let known = Permissions.names.first(where: { $0.name == word }) else {
                throw refuse("none, or a list of \(Permissions.names.map(\.name).joined(separator: ", "))")
            }
            permissions.insert(known.value)
        }
        return permissions
    }
}
