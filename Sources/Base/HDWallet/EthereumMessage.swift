// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto

/// A text that is signed as a message of Ethereum. EIP-191, version 0x45.
package enum EthereumMessage {
    /// The hash that is signed.
    package static func digest(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        return Keccak256.hash(Array("\u{19}Ethereum Signed Message:\n\(bytes.count)".utf8) + bytes)
    }
}
