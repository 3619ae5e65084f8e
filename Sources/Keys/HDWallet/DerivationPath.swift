// SPDX-License-Identifier: GPL-3.0-or-later

/// The path from the master key to a key. BIP-32.
package struct DerivationPath: Sendable, Hashable, CustomStringConvertible {
    /// The index of each level. A hardened index has its highest bit set.
    package let indexes: [UInt32]

    /// The maximum number of levels, which is the limit of a Keycard.
    package static let maximumLevels = 10
    /// The bit of a hardened index.
    package static let hardened: UInt32 = 0x8000_0000

    /// Makes a path; nil for more than 10 levels.
    package init?(_ indexes: [UInt32]) {
        guard indexes.count <= Self.maximumLevels else { return nil }
        self.indexes = indexes
    }

    /// Reads a path such as `m/44'/60'/0'/0/0`; `h` and `H` stand for `'`. The result is nil for other text.
    package init?(_ text: String) {
        var parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)[...]
        guard parts.popFirst().map({ $0.elementsEqual("m".utf8) }) == true else { return nil }
        var indexes: [UInt32] = []
        for part in parts {
            var digits = part
            var bit: UInt32 = 0
            if let mark = digits.last, "'hH".utf8.contains(mark) {
                digits = digits.dropLast()
                bit = Self.hardened
            }
            guard (1...10).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }),
                let index = UInt32(Substring(digits)), index < Self.hardened, indexes.count < Self.maximumLevels
            else { return nil }
            indexes.append(index | bit)
        }
        self.init(indexes)
    }

    /// Each index as four big-endian bytes.
    package var bytes: [UInt8] {
        indexes.flatMap { index in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: index >> $0) } }
    }

    package var description: String {
        indexes.reduce("m") { text, index in
            text + "/\(index & ~Self.hardened)" + (index & Self.hardened != 0 ? "'" : "")
        }
    }
}

extension DerivationPath {
    private init(known indexes: [UInt32]) { self.indexes = indexes }

    /// m/44'/60'/0'/0/0: the first address of Ethereum. BIP-44.
    package static let firstEthereumAddress = DerivationPath(
        known: [44 | hardened, 60 | hardened, 0 | hardened, 0, 0]
    )

    /// m/43'/60'/1581'/1836083566'/0: the key under which tokens of M-Pin are sealed. EIP-1581 leaves the type of a key to
    /// its program; this one is "mpin" in ASCII.
    package static let mpinTokens = DerivationPath(
        known: [43 | hardened, 60 | hardened, 1581 | hardened, 0x6D70_696E | hardened, 0]
    )

    /// m/44'/60'/0'/1/0: the key with which a device signs requests to a server of its app.
    package static let ethereumSigner = DerivationPath(known: [44 | hardened, 60 | hardened, 0 | hardened, 1, 0])
}
