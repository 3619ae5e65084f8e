// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Secrets

/// Why words are not a valid mnemonic. No case contains one of the words.
package enum MnemonicError: Error, Sendable, Equatable {
    /// There are not 12, 15, 18, 21 or 24 words.
    case wrongCount(Int)
    /// The word at this position, from 1 on, is not in the list.
    case unknownWord(Int)
    /// Each word is in the list, but the last one does not fit: a word is wrong, or two are in the wrong order.
    case wrongChecksum
    /// libcrypto failed.
    case crypto(CryptoError)
}

/// A mnemonic sentence of 12 to 24 English words with a valid checksum. BIP-39.
///
/// The words are wiped when the value is destroyed.
package struct Mnemonic: ~Copyable, Sendable {
    /// Two big-endian bytes for each word: its index in the list.
    package let indexes: Secret

    package static let counts = [12, 15, 18, 21, 24]

    /// The number of words.
    package var count: Int { indexes.count / 2 }

    /// Takes the indexes of words, two big-endian bytes each, as in the answer of a Keycard to GENERATE MNEMONIC.
    package init(indexes: consuming Secret) throws(MnemonicError) {
        let count = indexes.count / 2
        guard indexes.count.isMultiple(of: 2), Self.counts.contains(count) else { throw .wrongCount(count) }
        let unknown = indexes.withBytes { bytes in
            (0..<count).first { Self.index(in: bytes, at: $0) >= WordList.count }
        }
        if let unknown { throw .unknownWord(unknown + 1) }
        let bits = Self.packed(indexes)
        let entropyCount = count * 4 / 3
        guard let entropy = bits.part(0..<entropyCount) else { throw .wrongCount(count) }
        let checksum = try Self.checksum(entropy)
        guard bits.withBytes({ $0[entropyCount] }) == checksum else { throw .wrongChecksum }
        self.indexes = indexes
    }

    /// Makes the words of 16, 20, 24, 28 or 32 random bytes.
    package init(entropy: borrowing Secret) throws(MnemonicError) {
        let count = entropy.count * 3 / 4
        guard entropy.count.isMultiple(of: 4), Self.counts.contains(count) else { throw .wrongCount(count) }
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

    /// Reads words that a person has typed: ASCII, upper or lower case, with white space between them.
    package init(words text: borrowing Secret) throws(MnemonicError) {
        let indexes = try text.withBytes { bytes throws(MnemonicError) in
            let words = bytes.split { $0 == 0x20 || (0x09...0x0D).contains($0) }
            guard Self.counts.contains(words.count) else { throw MnemonicError.wrongCount(words.count) }
            return try Secret(count: words.count * 2) { out throws(MnemonicError) in
                for (position, word) in words.enumerated() {
                    let lower = word.lazy.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
                    guard let index = WordList.index(of: lower) else { throw .unknownWord(position + 1) }
                    out[2 * position] = UInt8(truncatingIfNeeded: index >> 8)
                    out[2 * position + 1] = UInt8(truncatingIfNeeded: index)
                }
            }
        }
        try self.init(indexes: indexes)
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
    /// The passphrase is ASCII, and empty for a wallet without one.
    package func seed(passphrase: [UInt8] = []) throws(CryptoError) -> Secret {
        guard passphrase.allSatisfy({ $0 < 0x80 }) else { throw .unsupported }
        return try DigestAlgorithm.sha512.pbkdf2(
            words,
            salt: Array("mnemonic".utf8) + passphrase,
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
    private static func checksum(_ entropy: borrowing Secret) throws(MnemonicError) -> UInt8 {
        do throws(CryptoError) {
            let hash = try DigestAlgorithm.sha256.hash(entropy)
            let unused = 8 - entropy.count / 4
            return (hash.withBytes { $0[0] } >> unused) << unused
        } catch {
            throw .crypto(error)
        }
    }
}
