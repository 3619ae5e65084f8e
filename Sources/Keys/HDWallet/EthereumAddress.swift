// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// The address of a key on Ethereum: the last 20 bytes of the Keccak-256 hash of its coordinates.
package struct EthereumAddress: Sendable, Hashable, CustomStringConvertible {
    /// 20 bytes.
    package let bytes: [UInt8]

    /// Takes 20 bytes; nil for another number.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 20 else { return nil }
        self.bytes = bytes
    }

    package init(_ key: PublicKey) {
        bytes = Keccak256.hash(key.uncompressed.dropFirst()).suffix(20)
    }

    /// `0x` and 40 digits. The case of the letters is a checksum. EIP-55.
    package var description: String {
        let digits = Hex.encode(bytes)
        let hash = Keccak256.hash(digits.utf8)
        let checked = digits.utf8.enumerated().map { position, digit in
            let nibble = hash[position / 2] >> (position.isMultiple(of: 2) ? 4 : 0) & 0x0F
            return digit >= 0x61 && nibble >= 8 ? digit & ~0x20 : digit
        }
        return "0x" + String(decoding: checked, as: UTF8.self)
    }
}

/// A text that is signed as a message of Ethereum. EIP-191, version 0x45.
package enum EthereumMessage {
    /// The hash that is signed.
    package static func digest(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        return Keccak256.hash(Array("\u{19}Ethereum Signed Message:\n\(bytes.count)".utf8) + bytes)
    }
}
