// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// A mnemonic sentence of 12 to 24 English words with a valid checksum. BIP-39.
///
/// The words are wiped when the value is destroyed. No error contains one of the words.
package struct Mnemonic: ~Copyable, Sendable {
    /// Two big-endian bytes for each word: its index in the list.
    package let indexes: Secret

    package static let counts = [12, 15, 18, 21, 24]
    /// The lengths of a passphrase, in bytes.
    package static let passphraseCounts = 1...256

    private static let wrongCount = Malformed("there are not 12, 15, 18, 21 or 24 words")

    private static func unknownWord(_ index: Int) -> Malformed {
        Malformed("word \(index + 1) is not in the list")
    }

    private init(checked indexes: consuming Secret) { self.indexes = indexes }

    package func clone() -> Mnemonic { Mnemonic(checked: indexes.clone()) }

    /// The number of words.
    package var count: Int { indexes.count / 2 }

    /// Takes the indexes of words, two big-endian bytes each, as in the answer of a Keycard to GENERATE MNEMONIC.
    package init(indexes: consuming Secret) throws(Malformed) {
        let count = indexes.count / 2
        guard indexes.count.isMultiple(of: 2), Self.counts.contains(count) else { throw Self.wrongCount }
        let unknown = indexes.withBytes { bytes in
            (0..<count).first { Self.index(in: bytes, at: $0) >= WordList.count }
        }
        if let unknown { throw Self.unknownWord(unknown) }
        let bits = Self.packed(indexes)
        let entropyCount = count * 4 / 3
        guard let entropy = bits.part(0..<entropyCount) else { throw Self.wrongCount }
        let checksum = try Self.checksum(entropy)
        guard bits.withBytes({ $0[entropyCount] }) == checksum else {
            throw Malformed("the checksum of the words is wrong")
        }
        self.indexes = indexes
    }

    /// Makes the words of 16, 20, 24, 28 or 32 random bytes.
    package init(entropy: borrowing Secret) throws(Malformed) {
        let count = entropy.count * 3 / 4
        guard entropy.count.isMultiple(of: 4), Self.counts.contains(count) else { throw Self.wrongCount }
        let bits = entropy.appending([try Self.checksum(entropy)])
        try self.init(
            indexes: Secret(count: count * 2) { out in
                bits.withBytes { bits in
                    for word in 0..<count {
                        var index = 0
                        for bit in word * 11..<word * 11 + 11 {
                            index = index << 1 | Int(bits[bit / 8] >> (7 - bit % 8) & 1)
                        }
                        out[2 * word] = UInt8(truncatingIfNeeded: index >> 8)
                        out[2 * word + 1] = UInt8(truncatingIfNeeded: index)
                    }
                }
            }
        )
    }

    /// Reads words that a person has typed: ASCII, upper or lower case, whole or their first four letters, with white
    /// space or commas between them. Each may have its number before it, from 1 on, as on paper.
    package init(words text: borrowing Secret) throws(Malformed) {
        let indexes = try text.withBytes { bytes throws(Malformed) in
            let words = TypedWord.words(in: bytes)
            guard Self.counts.contains(words.count) else { throw Self.wrongCount }
            return try Secret(count: words.count * 2) { out throws(Malformed) in
                for (position, word) in words.enumerated() {
                    guard word.number == nil || word.number == position + 1 else {
                        throw Malformed("the number before word \(position + 1) is another one")
                    }
                    guard let index = word.index else { throw Self.unknownWord(position) }
                    out[2 * position] = UInt8(truncatingIfNeeded: index >> 8)
                    out[2 * position + 1] = UInt8(truncatingIfNeeded: index)
                }
            }
        }
        try self.init(indexes: indexes)
    }

    /// How many words a person has typed.
    package static func count(of text: borrowing Secret) -> Int { text.withBytes { TypedWord.words(in: $0).count } }

    /// Whether a person has typed the words at these positions, which count from 1, in the form of `init(words:)`.
    package func matches(_ typed: borrowing Secret, at positions: [Int]) -> Bool {
        typed.withBytes { bytes in
            let words = TypedWord.words(in: bytes)
            return words.count == positions.count
                && zip(words, positions).allSatisfy { word, position in
                    guard (1...count).contains(position), word.number == nil || word.number == position else {
                        return false
                    }
                    return word.index.map(Int.init) == indexes.withBytes { Self.index(in: $0, at: position - 1) }
                }
        }
    }

    /// The words with one space between them.
    package var words: Secret {
        let count = (0..<count).reduce(self.count - 1) { $0 + (word(at: $1)?.count ?? 0) }
        return Secret(count: count) { out in
            var position = 0
            for number in 0..<self.count {
                if number > 0 {
                    out[position] = 0x20
                    position += 1
                }
                for byte in word(at: number) ?? [] {
                    out[position] = byte
                    position += 1
                }
            }
        }
    }

    /// The word at a position, from 0 on; nil after the last word.
    package func word(at position: Int) -> [UInt8]? {
        guard (0..<count).contains(position) else { return nil }
        return WordList.words[indexes.withBytes { Self.index(in: $0, at: position) }]
    }

    /// Makes the seed of 64 bytes: PBKDF2 with HMAC-SHA512 and 2048 rounds. BIP-39, From mnemonic to seed.
    ///
    /// The passphrase is empty for a wallet without one. It is ASCII, for which the form NFKD changes nothing.
    package func seed(passphrase: borrowing Secret = Secret([])) throws(CryptoError) -> Secret {
        guard passphrase.withBytes({ $0.allSatisfy { $0 < 0x80 } }) else { throw .unsupported }
        return try DigestAlgorithm.sha512.pbkdf2(
            words,
            salt: Secret("mnemonic".utf8).appending(passphrase),
            iterations: 2048,
            count: 64
        )
    }

    // MARK: Bits

    private static func index(in bytes: UnsafeRawBufferPointer, at position: Int) -> Int {
        Int(bytes[2 * position]) << 8 | Int(bytes[2 * position + 1])
    }

    /// The 11 bits of each word one after the other: the entropy, and one byte that begins with the checksum.
    private static func packed(_ indexes: borrowing Secret) -> Secret {
        let count = indexes.count / 2
        return Secret(count: count * 4 / 3 + 1) { out in
            indexes.withBytes { bytes in
                for bit in 0..<count * 11 where index(in: bytes, at: bit / 11) >> (10 - bit % 11) & 1 != 0 {
                    out[bit / 8] |= 0x80 >> UInt8(bit % 8)
                }
            }
        }
    }

    /// The first bits of the hash, one for each 32 bits of entropy, in the upper bits of a byte.
    private static func checksum(_ entropy: borrowing Secret) throws(Malformed) -> UInt8 {
        guard let hash = try? DigestAlgorithm.sha256.hash(entropy) else { throw Malformed("libcrypto failed") }
        let unused = 8 - entropy.count / 4
        return (hash.withBytes { $0[0] } >> unused) << unused
    }
}

/// A word as a person has typed it, perhaps with its number before it, such as `3. able`.
private struct TypedWord {
    var number: Int?
    private let letters: Slice<UnsafeRawBufferPointer>

    /// Its place in the list; nil if it is neither a word nor the first four letters or more of one.
    var index: UInt16? { WordList.index(ofTyped: letters.lazy.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }) }

    /// Splits a text at white space and commas. A number belongs to the word behind it.
    static func words(in text: UnsafeRawBufferPointer) -> [TypedWord] {
        var words: [TypedWord] = []
        var number: Int?
        for part in text.split(whereSeparator: { $0 == 0x20 || (0x09...0x0D).contains($0) || $0 == UInt8(ascii: ",") })
        {
            let digits = part.prefix { (0x30...0x39).contains($0) }
            var rest = part[digits.endIndex...]
            if !digits.isEmpty, let mark = rest.first,
                [UInt8(ascii: "."), UInt8(ascii: ")"), UInt8(ascii: ":")].contains(mark)
            {
                rest = rest.dropFirst()
            }
            // Two numbers without a word between them are no numbers of words.
            if !digits.isEmpty, number == nil {
                number = digits.prefix(4).reduce(0) { $0 * 10 + Int($1 - 0x30) }
            } else if !digits.isEmpty {
                rest = part
            }
            guard !rest.isEmpty else { continue }
            words.append(TypedWord(number: number, letters: rest))
            number = nil
        }
        return words
    }
}

/// The English words of BIP-39: 2048 words in alphabetical order, from the file `english.txt` of the specification.
package enum WordList {
    package static let count = 2048

    /// The bytes of the file, whose SHA-256 a test checks.
    package static var file: [UInt8] { PackageResources.english_txt }

    /// Each word in ASCII.
    package static let words: [[UInt8]] = file.split(separator: 0x0A).map { Array($0) }

    /// Finds the index of a word, or of a word that begins with these four letters or more: each four letters begin one
    /// word at most. nil if there is no such word.
    static func index(ofTyped typed: some Collection<UInt8>) -> UInt16? {
        let place = place(of: typed)
        guard place < words.count, words[place].starts(with: typed) else { return nil }
        return words[place].count == typed.count || typed.count >= 4 ? UInt16(place) : nil
    }

    /// The index of the first word that does not come before these letters.
    private static func place(of word: some Collection<UInt8>) -> Int {
        var range = 0..<words.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if words[middle].lexicographicallyPrecedes(word) {
                range = middle + 1..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        return range.lowerBound
    }
}
