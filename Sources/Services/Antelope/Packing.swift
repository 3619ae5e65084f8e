// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Writes values in the packed form of Antelope: numbers are little-endian, lengths are varuint32.
package struct PackWriter {
    package private(set) var bytes: [UInt8] = []

    /// The maximum number of bytes of one packed value.
    package static let maximumCount = 64 * 1024

    package init() {}

    package mutating func number(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func raw(_ value: some Sequence<UInt8>) { bytes.append(contentsOf: value) }

    package mutating func varuint(_ value: UInt32) {
        var rest = value
        repeat {
            let more = rest >= 0x80
            bytes.append(UInt8(rest & 0x7F) | (more ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
    }

    /// Writes a length and the bytes.
    package mutating func counted(_ value: [UInt8]) {
        varuint(UInt32(truncatingIfNeeded: value.count))
        raw(value)
    }
}

/// Reads values in the packed form of Antelope.
package struct PackReader {
    private var rest: ArraySlice<UInt8>

    package init(_ bytes: [UInt8]) { rest = bytes[...] }

    package var isAtEnd: Bool { rest.isEmpty }
    /// The number of bytes that are left.
    package var count: Int { rest.count }

    private static let ended = Malformed("the bytes end too early")

    package mutating func raw(_ count: Int) throws(Malformed) -> [UInt8] {
        guard count >= 0, count <= rest.count else { throw Self.ended }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    package mutating func number<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) throws(Malformed)
        -> Number
    {
        var value: Number = 0
        for (index, byte) in try raw(Number.bitWidth / 8).enumerated() {
            value |= Number(truncatingIfNeeded: byte) << Number(truncatingIfNeeded: index * 8)
        }
        return value
    }

    /// Reads a varuint32. More bytes than necessary are accepted, as nodes do; a value of more than 32 bits is not.
    package mutating func varuint() throws(Malformed) -> UInt32 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 35, by: 7) {
            guard let byte = rest.popFirst() else { throw Self.ended }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 {
                guard let whole = UInt32(exactly: value) else { break }
                return whole
            }
        }
        throw Malformed("a varuint32 is too large")
    }

    /// Reads a length and as many bytes.
    package mutating func counted() throws(Malformed) -> [UInt8] {
        let count = try varuint()
        guard count <= UInt32(clamping: rest.count) else { throw Self.ended }
        return try raw(Int(count))
    }

    /// Reads a length and UTF-8.
    package mutating func string() throws(Malformed) -> String {
        guard let text = String(validating: try counted(), as: UTF8.self) else {
            throw Malformed("a string is not UTF-8")
        }
        return text
    }
}
