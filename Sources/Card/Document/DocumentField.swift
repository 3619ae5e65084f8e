// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// Texts and dates of data groups. ICAO 9303-10 4.7.11.
package enum DocumentField {
    /// Reads UTF-8, or Latin-1 as old documents have it. Control characters become spaces. UTF-8 that cannot be compared,
    /// which no issuer writes, is read as Latin-1, too.
    package static func decode(_ bytes: some Sequence<UInt8>) -> String {
        let clean = bytes.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }
        if let text = String(validating: clean, as: UTF8.self), text.isComparable { return text }
        return String(String.UnicodeScalarView(clean.map { Unicode.Scalar($0) }))
    }

    /// Splits a text at its fillers: the parts of an address, of a place.
    package static func parts(_ bytes: some Collection<UInt8>) -> [String] {
        bytes.split(separator: UInt8(ascii: "<")).map { decode($0) }
    }

    /// A name: two fillers stand between surname and given names, one stands for a space.
    package static func name(_ bytes: [UInt8]) -> String {
        var names: [[String]] = []
        var rest = bytes[...]
        while let place = rest.firstPlace(of: "<<".utf8) {
            names.append(parts(rest[..<place]))
            rest = rest[(place + 2)...]
        }
        names.append(parts(rest))
        return names.filter { !$0.isEmpty }.map { $0.joined(separator: " ") }.joined(separator: ", ")
    }

    /// A date as YYYY-MM-DD: four bytes of BCD, or eight digits; nil for other bytes, and for a day that no calendar has.
    /// Unknown parts are 00.
    package static func date(_ bytes: [UInt8]) -> String? {
        let digits: [UInt8]
        switch bytes.count {
        case 4: digits = bytes.flatMap { [$0 >> 4, $0 & 0x0F] }
        case 8: digits = bytes.map { $0 &- UInt8(ascii: "0") }
        default: return nil
        }
        guard digits.allSatisfy({ $0 < 10 }) else { return nil }
        func number(_ part: ArraySlice<UInt8>) -> Int { part.reduce(0) { $0 * 10 + Int($1) } }
        let (year, month, day) = (number(digits[..<4]), number(digits[4..<6]), number(digits[6...]))
        // A leap year, in which every known day may be.
        guard CalendarDay(year: year == 0 ? 2000 : year, month: max(month, 1), day: max(day, 1)) != nil else {
            return nil
        }
        let text = String(decoding: digits.map { $0 + UInt8(ascii: "0") }, as: UTF8.self)
        return "\(text.prefix(4))-\(text.dropFirst(4).prefix(2))-\(text.suffix(2))"
    }
}
