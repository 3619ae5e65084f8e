// SPDX-License-Identifier: GPL-3.0-or-later
import Readers

/// The features of a reader beyond the exchange of APDUs. PC/SC part 10, 2.2 and 2.6.
package struct ReaderFeatures: Sendable, Equatable {
    /// The control code of feature 0x20: the reader has a keypad and runs PACE itself. A reader with only features 6
    /// and 7 cannot use its keypad for the eID card and counts as a basic reader.
    var executePACE: UInt32?
    /// The control code of feature 0x07: the reader asks for the new PIN.
    var modifyPINDirect: UInt32?
    /// The control code of feature 0x12.
    var tlvProperties: UInt32?
    /// The maximum number of data bytes in an APDU; 0 for short APDUs only, nil when the reader does not report it.
    var maximumAPDUData: UInt32?
    /// The USB identity, if the driver reports it.
    var vendor: UInt16?
    var product: UInt16?

    init() {}

    /// The control code of CM_IOCTL_GET_FEATURE_REQUEST: SCARD_CTL_CODE(3400) of pcsc-lite.
    static let request: UInt32 = 0x4200_0000 + 3400

    /// Parses the answer to `request`: TLVs of a feature number and its control code, four bytes, big-endian. A
    /// malformed answer describes a basic reader.
    package init(features bytes: some Sequence<UInt8>) {
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
    package mutating func add(properties bytes: some Sequence<UInt8>) {
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

    /// Whether the reader transmits the APDUs of the eID card, which have up to about 500 bytes. A reader that does not
    /// report a limit is assumed to do so, because most do. An APDU that is too long fails before a PIN is used.
    var hasExtendedLength: Bool { maximumAPDUData.map { $0 >= 500 } ?? true }

    func description(of name: ReaderName) -> ReaderDescription {
        ReaderDescription(name: name.text, hasKeypad: executePACE != nil, hasExtendedLength: hasExtendedLength)
    }

    /// Parses TLVs with one byte each for tag and length; nil when a value is truncated.
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
