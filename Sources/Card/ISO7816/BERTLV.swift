// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A data object: tag, length, value. ISO 7816-4, 5.2.2 (BER-TLV); ITU-T X.690.
///
/// Tags have one to three bytes, lengths are definite and below 16 MiB. Reading is not recursive: the caller reads the
/// `children` of one level at a time, so that deep nesting needs no stack.
package struct BERTLV: Sendable, Equatable {
    /// The bytes of the tag as one number, such as 0x87 or 0x7F49.
    package var tag: UInt32
    package var value: [UInt8]

    package init(_ tag: UInt32, _ value: [UInt8]) {
        self.tag = tag
        self.value = value
    }

    /// Makes an object whose value consists of these objects.
    package init(_ tag: UInt32, _ children: [BERTLV]) {
        self.init(tag, children.flatMap(\.encoded))
    }

    /// Reads exactly one object.
    /// - Throws: `Malformed`; `.leftOver` for bytes after the object.
    package init(_ bytes: some Collection<UInt8>) throws(Malformed) {
        var reader = BERReader(bytes)
        self = try reader.next()
        guard reader.isAtEnd else { throw .leftOver }
    }

    /// Reads the object at the start of a file. What follows it is ignored, because a file may be longer than its
    /// content. ISO 7816-4, 7.2.
    /// - Throws: `Malformed`; `.truncated` for a file that is shorter than the length of its object.
    package init(startOf file: some Collection<UInt8>) throws(Malformed) {
        var reader = BERReader(file)
        self = try reader.next()
    }

    /// Reads all objects; no bytes are an empty array.
    package static func sequence(_ bytes: some Collection<UInt8>) throws(Malformed) -> [BERTLV] {
        var reader = BERReader(bytes)
        var objects: [BERTLV] = []
        while !reader.isAtEnd { objects.append(try reader.next()) }
        return objects
    }

    /// The objects before the first one that cannot be read.
    package static func readable(_ bytes: some Collection<UInt8>) -> [BERTLV] {
        var reader = BERReader(bytes)
        var objects: [BERTLV] = []
        while let object = try? reader.next() { objects.append(object) }
        return objects
    }

    /// Whether the value consists of objects: bit 6 of the first byte of the tag.
    package var isConstructed: Bool {
        var first = tag
        while first > 0xFF { first >>= 8 }
        return first & 0x20 != 0
    }

    /// The objects of the value.
    package var children: [BERTLV] {
        get throws(Malformed) { try Self.sequence(value) }
    }

    /// The encoding with the shortest length.
    package var encoded: [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(value.count + 7)
        for shift in [24, 16, 8] as [UInt32] where tag >> shift != 0 {
            out.append(UInt8(truncatingIfNeeded: tag >> shift))
        }
        out.append(UInt8(truncatingIfNeeded: tag))
        switch value.count {
        case ..<0x80:
            out.append(UInt8(truncatingIfNeeded: value.count))
        case ..<0x100:
            out += [0x81, UInt8(truncatingIfNeeded: value.count)]
        case ..<0x1_0000:
            out += [0x82, UInt8(truncatingIfNeeded: value.count >> 8), UInt8(truncatingIfNeeded: value.count)]
        case ..<0x100_0000:
            out.append(0x83)
            for shift in [16, 8, 0] { out.append(UInt8(truncatingIfNeeded: value.count >> shift)) }
        default:
            out.append(0x84)
            for shift in [24, 16, 8, 0] { out.append(UInt8(truncatingIfNeeded: value.count >> shift)) }
        }
        return out + value
    }
}

/// What is wrong with an encoding.
extension Malformed {
    /// The bytes end inside an object.
    package static let truncated = Malformed("an object is cut off")
    /// A tag has more than three bytes, a leading zero, or is not the expected one.
    package static let invalidTag = Malformed("an unexpected tag")
    /// A length is indefinite, has more than three bytes, or exceeds a limit.
    package static let invalidLength = Malformed("an invalid length")
    /// Bytes or objects follow the last one.
    package static let leftOver = Malformed("something follows the last object")
}

/// Reads data objects one after the other.
package struct BERReader: Sendable {
    private let bytes: [UInt8]
    private var position = 0

    package init(_ bytes: some Collection<UInt8>) { self.bytes = Array(bytes) }

    package var isAtEnd: Bool { position >= bytes.count }

    /// The bytes that have not been read.
    package var remainder: ArraySlice<UInt8> { bytes[min(position, bytes.count)...] }

    /// Reads the next object.
    package mutating func next() throws(Malformed) -> BERTLV {
        let tag = try readTag()
        let length = try readLength()
        guard length <= bytes.count - position else { throw .truncated }
        defer { position += length }
        return BERTLV(tag, Array(bytes[position..<position + length]))
    }

    /// Reads a tag and a length; nil if there are none.
    package mutating func header() -> (tag: UInt32, length: Int, count: Int)? {
        let start = position
        guard let tag = try? readTag(), let length = try? readLength() else { return nil }
        return (tag, length, position - start)
    }

    private mutating func readByte() throws(Malformed) -> UInt8 {
        guard position < bytes.count else { throw .truncated }
        defer { position += 1 }
        return bytes[position]
    }

    private mutating func readTag() throws(Malformed) -> UInt32 {
        let first = try readByte()
        guard first & 0x1F == 0x1F else { return UInt32(first) }
        let second = try readByte()
        // 80 would be a leading zero of the tag number.
        guard second != 0x80 else { throw .invalidTag }
        let tag = UInt32(first) << 8 | UInt32(second)
        guard second & 0x80 != 0 else { return tag }
        let third = try readByte()
        guard third & 0x80 == 0 else { throw .invalidTag }
        return tag << 8 | UInt32(third)
    }

    private mutating func readLength() throws(Malformed) -> Int {
        let first = try readByte()
        guard first & 0x80 != 0 else { return Int(first) }
        guard (1...3).contains(first & 0x7F) else { throw .invalidLength }
        var length = 0
        for _ in 0..<(first & 0x7F) { length = length << 8 | Int(try readByte()) }
        return length
    }
}
