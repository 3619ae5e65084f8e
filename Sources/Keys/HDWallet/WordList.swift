// SPDX-License-Identifier: GPL-3.0-or-later

/// The English words of BIP-39: 2048 words in alphabetical order, from the file `english.txt` of the specification.
package enum WordList {
    package static let count = 2048

    /// The bytes of the file, whose SHA-256 a test checks.
    package static var file: [UInt8] { PackageResources.english_txt }

    /// Each word in ASCII.
    package static let words: [[UInt8]] = file.split(separator: 0x0A).map { Array($0) }

    /// Finds the index of a word; nil if there is no such word.
    static func index(of word: some Collection<UInt8>) -> UInt16? {
        var range = 0..<words.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if words[middle].lexicographicallyPrecedes(word) {
                range = middle + 1..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        guard range.lowerBound < words.count, words[range.lowerBound].elementsEqual(word) else { return nil }
        return UInt16(range.lowerBound)
    }
}
