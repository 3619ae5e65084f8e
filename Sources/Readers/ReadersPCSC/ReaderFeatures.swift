// SPDX-License-Identifier: GPL-3.0-or-later
import Readers

/// What a reader can do beyond carrying APDUs. PC/SC part 10, 2.2 and 2.6.
struct ReaderFeatures: Sendable, Equatable {
    /// Control code of feature 0x20: the reader has a keypad and runs PACE itself. A reader that can only verify or
    /// modify a PIN (features 6 and 7 alone) is no use to the eID card and counts as a basic one.
    var executePACE: UInt32?
    /// Control code of feature 0x07: the reader asks for the new PIN.
    var modifyPINDirect: UInt32?
    /// Control code of feature 0x12.
    var tlvProperties: UInt32?
    /// Most data bytes in an APDU; 0 says short APDUs only; nil that the reader does not tell.
    var maximumAPDUData: UInt32?
    /// USB identity, where the driver tells it.
    var vendor: UInt16?
    var product: UInt16?

    init() {}

    /// Control code of CM_IOCTL_GET_FEATURE_REQUEST: SCARD_CTL_CODE(3400) of pcsc-lite.
    static let request: UInt32 = 0x4200_0000 + 3400

    /// Reads the answer to `request`: TLVs of a feature number and its control code, four bytes, big-endian.
    /// An answer that is no such list describes a basic reader.
    init(features bytes: some Sequence<UInt8>) {
        guard let list = Self.parse(bytes) else { return }
        for (tag, value) in list where value.count == 4 {
            let code = value.reduce(0) { $0 << 8 | UInt32($1) }
            switch tag {
            case 0x07: modifyPINDirect = code
            case 0x12: tlvProperties = code
            case 0x20: executePACE = code
            default: break
            }
        }
    }

    /// Adds the answer of feature 0x12: TLVs of a property number and its value, little-endian.
    mutating func add(properties bytes: some Sequence<UInt8>) {
        guard let list = Self.parse(bytes) else { return }
        for (tag, value) in list where (1...4).contains(value.count) {
            let number = value.reversed().reduce(0) { $0 << 8 | UInt32($1) }
            switch tag {
            case 10: maximumAPDUData = number
            case 11: vendor = UInt16(exactly: number)
            case 12: product = UInt16(exactly: number)
            default: break
            }
        }
    }

    /// Certificates and keys of the eID card need APDUs of up to about 500 bytes. A reader that does not tell is
    /// believed to be able: most readers for this card are, and the card's own refusal comes before any PIN.
    var hasExtendedLength: Bool { maximumAPDUData.map { $0 >= 500 } ?? true }

    func description(of name: ReaderName) -> ReaderDescription {
        ReaderDescription(name: name.text, hasKeypad: executePACE != nil, hasExtendedLength: hasExtendedLength)
    }

    /// Tag, length and value with one byte each for the first two; nil when a value is cut.
    private static func parse(_ bytes: some Sequence<UInt8>) -> [(tag: UInt8, value: [UInt8])]? {
        var rest = Array(bytes)[...]
        var list: [(UInt8, [UInt8])] = []
        while let tag = rest.popFirst() {
            guard let length = rest.popFirst(), rest.count >= length else { return nil }
            list.append((tag, Array(rest.prefix(Int(length)))))
            rest = rest.dropFirst(Int(length))
        }
        return list
    }
}
