// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The list of answers to reset that pcsc-tools ships: smartcard_list.txt.
///
/// A line of hexadecimal digits, with `.` for any digit and `[..]` for some, is followed by indented lines that name the
/// cards. Lines of another form are left out. Each byte of the file is looked at once.
package enum CardList {
    /// The maximum size of a file in bytes.
    package static let maximumLength = 4 << 20
    /// The maximum number of names of one card.
    package static let maximumNames = 16
    private static let maximumLine = 512
    /// A pattern has at most two digits for each of the 33 bytes of an answer to reset, and room for sets.
    private static let maximumDigits = 66

    /// Returns the names of the cards with this answer to reset.
    package static func names(of answerToReset: [UInt8], in file: some Collection<UInt8>) -> [String] {
        let digits = answerToReset.flatMap { [$0 >> 4, $0 & 0x0F] }
        guard !digits.isEmpty, digits.count <= maximumDigits else { return [] }
        var names: [String] = []
        var isMatch = false
        for line in file.lazy.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            guard names.count < maximumNames else { break }
            guard let first = line.first, first != UInt8(ascii: "#") else {
                isMatch = false
                continue
            }
            guard first == UInt8(ascii: "\t") || first == UInt8(ascii: " ") else {
                isMatch = matches(line.prefix(maximumLine + 1), digits)
                continue
            }
            guard isMatch else { continue }
            let name = String(decoding: line.prefix(maximumLine), as: UTF8.self).unicodeScalars
            let trimmed = String(name.trimmed { $0.properties.isWhitespace })
            if !trimmed.isEmpty { names.append(trimmed) }
        }
        return names
    }

    private static func matches(_ pattern: some Collection<UInt8>, _ digits: [UInt8]) -> Bool {
        guard pattern.count <= maximumLine else { return false }
        var index = 0
        // nil: outside of a set; else whether the set has the digit.
        var set: Bool?
        for byte in pattern {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\r"), UInt8(ascii: ","): continue
            case UInt8(ascii: "["):
                guard set == nil else { return false }
                set = false
            case UInt8(ascii: "]"):
                guard set == true else { return false }
                set = nil
                index += 1
            case UInt8(ascii: "."):
                guard set == nil, index < digits.count else { return false }
                index += 1
            default:
                guard let value = Hex.value(byte), index < digits.count else { return false }
                if let found = set {
                    set = found || value == digits[index]
                } else {
                    guard value == digits[index] else { return false }
                    index += 1
                }
            }
        }
        return set == nil && index == digits.count
    }
}
