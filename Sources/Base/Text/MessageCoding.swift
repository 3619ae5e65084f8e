// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Writes a message from one program of badged to another. The first byte is its kind. Numbers are big-endian. A text is
/// preceded by its length in two bytes, a block by its length in four. A message may hold a secret: whoever has sent it
/// wipes it, and the writer leaves no copy behind when it needs more memory.
package struct MessageWriter {
    package private(set) var bytes: [UInt8]

    /// The maximum number of bytes of a text. Longer ones are cut.
    package static let maximumText = 1300

    package init(kind: UInt8) { bytes = [kind] }

    package mutating func append(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { append($0) }
    }

    package mutating func append(_ flag: Bool) { append(UInt8(flag ? 1 : 0)) }

    /// Appends bytes without a length, which end the message.
    package mutating func append(_ new: some Collection<UInt8>) {
        if bytes.count + new.count > bytes.capacity {
            var larger: [UInt8] = []
            larger.reserveCapacity(2 * (bytes.count + new.count))
            larger += bytes
            bytes.wipe()
            bytes = larger
        }
        bytes += new
    }

    package mutating func append(text: String) {
        // A cut inside a character is repaired, which can make the text a few bytes longer.
        let text =
            text.utf8.count <= Self.maximumText
            ? text : String(decoding: text.utf8.prefix(Self.maximumText - 9), as: UTF8.self)
        append(UInt16(text.utf8.count))
        append(text.utf8)
    }

    /// Appends bytes, or a text that must not be cut. There are fewer than 4 GiB.
    package mutating func append(block: some Collection<UInt8>) {
        append(UInt32(block.count))
        append(block)
    }

    package mutating func append<Element>(list: [Element], _ write: (inout MessageWriter, Element) -> Void) {
        append(UInt32(list.count))
        for element in list { write(&self, element) }
    }
}

/// Reads a message that a `MessageWriter` has written. Each function returns nil if the message is malformed.
package struct MessageReader {
    private var bytes: ArraySlice<UInt8>

    package init(_ bytes: [UInt8]) { self.bytes = bytes[...] }

    package var isAtEnd: Bool { bytes.isEmpty }

    package mutating func number<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
        let size = Number.bitWidth / 8
        guard bytes.count >= size else { return nil }
        defer { bytes = bytes.dropFirst(size) }
        return bytes.prefix(size).reduce(0) { $0 << 8 | Number($1) }
    }

    package mutating func flag() -> Bool? {
        switch number(UInt8.self) {
        case 0: false
        case 1: true
        default: nil
        }
    }

    package mutating func text() -> String? {
        guard let length = number(UInt16.self), length <= MessageWriter.maximumText else { return nil }
        return take(Int(length)).flatMap { String(validating: $0, as: UTF8.self) }
    }

    package mutating func block() -> [UInt8]? {
        number(UInt32.self).flatMap { take(Int($0)) }.map { Array($0) }
    }

    /// A block that is a text.
    package mutating func long() -> String? { block().flatMap { String(validating: $0, as: UTF8.self) } }

    /// A list of at most `maximum` elements.
    package mutating func list<Element>(
        maximum: Int,
        _ read: (inout MessageReader) -> Element?
    ) -> [Element]? {
        guard let count = number(UInt32.self), count <= maximum else { return nil }
        var list: [Element] = []
        for _ in 0..<count {
            guard let element = read(&self) else { return nil }
            list.append(element)
        }
        return list
    }

    package mutating func remaining() -> [UInt8] {
        defer { bytes = [] }
        return Array(bytes)
    }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard bytes.count >= count else { return nil }
        defer { bytes = bytes.dropFirst(count) }
        return bytes.prefix(count)
    }
}

extension [UInt8] {
    /// Overwrites the bytes.
    package mutating func wipe() {
        withUnsafeMutableBytes { bytes in
            if let base = bytes.baseAddress { explicit_bzero(base, bytes.count) }
        }
    }
}
