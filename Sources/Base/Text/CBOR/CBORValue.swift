// SPDX-License-Identifier: Apache-2.0

/// CBOR that badged writes, with the shortest heads and definite lengths. RFC 8949, 4.1.
package indirect enum CBORValue: Sendable {
    case integer(Int64)
    case bytes([UInt8])
    case text(String)
    case array([CBORValue])
    /// The pairs in the order in which they are written.
    case map([(CBORValue, CBORValue)])
    case tag(UInt64, CBORValue)
    case bool(Bool)
    case null
    /// An item that is encoded already. Its bytes are written as they are, because somebody has hashed or signed them.
    case encoded([UInt8])

    /// A byte string that holds the encoding of an item. RFC 8949, 3.4.5.1.
    package static func embedded(_ item: CBORValue) -> CBORValue { .tag(24, .bytes(item.encoding)) }

    /// The bytes of the item.
    package var encoding: [UInt8] {
        var out: [UInt8] = []
        write(to: &out)
        return out
    }

    private func write(to out: inout [UInt8]) {
        switch self {
        case .integer(let number) where number < 0: Self.head(1, UInt64(-1 - number), to: &out)
        case .integer(let number): Self.head(0, UInt64(number), to: &out)
        case .bytes(let bytes):
            Self.head(2, UInt64(bytes.count), to: &out)
            out += bytes
        case .text(let text):
            Self.head(3, UInt64(text.utf8.count), to: &out)
            out += text.utf8
        case .array(let items):
            Self.head(4, UInt64(items.count), to: &out)
            for item in items { item.write(to: &out) }
        case .map(let pairs):
            Self.head(5, UInt64(pairs.count), to: &out)
            for (key, value) in pairs {
                key.write(to: &out)
                value.write(to: &out)
            }
        case .tag(let tag, let content):
            Self.head(6, tag, to: &out)
            content.write(to: &out)
        case .bool(let bool): out.append(bool ? 0xF5 : 0xF4)
        case .null: out.append(0xF6)
        case .encoded(let bytes): out += bytes
        }
    }

    private static func head(_ major: UInt8, _ argument: UInt64, to out: inout [UInt8]) {
        let count: Int
        switch argument {
        case ..<24:
            out.append(major << 5 | UInt8(argument))
            return
        case ..<0x100: count = 1
        case ..<0x1_0000: count = 2
        case ..<0x1_0000_0000: count = 4
        default: count = 8
        }
        out.append(major << 5 | UInt8(24 + count.trailingZeroBitCount))
        out += (0..<count).reversed().map { UInt8(truncatingIfNeeded: argument >> (8 * UInt64($0))) }
    }
}

extension CBORValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    package init(stringLiteral value: String) { self = .text(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(arrayLiteral elements: CBORValue...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (CBORValue, CBORValue)...) { self = .map(elements) }
}
