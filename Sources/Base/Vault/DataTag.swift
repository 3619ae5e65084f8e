// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The BER tag of a data object: one or two bytes.
package struct DataTag: Sendable, Equatable {
    package let bytes: [UInt8]

    /// Takes a tag; nil for another form. ISO/IEC 7816-4, 5.2.2.1.
    package init?(_ bytes: [UInt8]) {
        switch bytes.count {
        case 1: guard bytes[0] != 0, bytes[0] & 0x1F != 0x1F else { return nil }
        case 2: guard bytes[0] & 0x1F == 0x1F, (0x1F...0x7F).contains(bytes[1]) else { return nil }
        default: return nil
        }
        self.bytes = bytes
    }

    package var hex: String { Hex.encode(bytes) }
}
