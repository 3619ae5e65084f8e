// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Writes a message from one program of badged to another. The first byte is its kind. Numbers are big-endian. A text is
/// preceded by its length in two bytes, a block by its length in four. A message may hold a secret: whoever has sent it
/// wipes it, and the writer leaves no copy behind when it needs more memory.
package struct MessageWriter {
    package private(set) var bytes: [UInt8]

    /// The maximum number of bytes of a text. Longer ones are cut.
    package static let maximumText = 1300

    package init(kind: UInt8, _ fields: any MessageField...) {
        bytes = [kind]
        append(fields: fields)
    }

    package mutating func append(fields: [any MessageField]) {
        for field in fields { field.write(to: &self) }
    }

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

    package mutating func append(list: [some MessageField]) { append(list: list) { $1.write(to: &$0) } }
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

    /// Reads the next field.
    package mutating func read<Field: MessageField>(_: Field.Type = Field.self) throws(Malformed) -> Field {
        try Field(from: &self)
    }

    package mutating func list<Field: MessageField>(maximum: Int) throws(Malformed) -> [Field] {
        try list(maximum: maximum) { try? Field(from: &$0) }.field()
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

// MARK: Fields

/// A value that a message has as one of its fields.
package protocol MessageField {
    func write(to writer: inout MessageWriter)
    init(from reader: inout MessageReader) throws(Malformed)
}

extension MessageField where Self: FixedWidthInteger {
    package func write(to writer: inout MessageWriter) { writer.append(self) }
    package init(from reader: inout MessageReader) throws(Malformed) { self = try reader.number(Self.self).field() }
}

extension UInt8: MessageField {}
extension UInt16: MessageField {}
extension UInt32: MessageField {}
extension UInt64: MessageField {}
extension Int64: MessageField {}

extension MessageField where Self: RawRepresentable, RawValue: MessageField {
    package func write(to writer: inout MessageWriter) { rawValue.write(to: &writer) }
    package init(from reader: inout MessageReader) throws(Malformed) {
        self = try Self(rawValue: try reader.read()).field()
    }
}

extension Bool: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(self) }
    package init(from reader: inout MessageReader) throws(Malformed) { self = try reader.flag().field() }
}

/// A text, which is cut if it is too long.
extension String: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(text: self) }
    package init(from reader: inout MessageReader) throws(Malformed) { self = try reader.text().field() }
}

/// A text that may be missing. An empty one counts as missing.
extension String?: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(text: self ?? "") }
    package init(from reader: inout MessageReader) throws(Malformed) {
        let text: String = try reader.read()
        self = text.isEmpty ? nil : text
    }
}

/// A block.
extension [UInt8]: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(block: self) }
    package init(from reader: inout MessageReader) throws(Malformed) { self = try reader.block().field() }
}

extension Optional {
    /// The value of a field that was read.
    package func field() throws(Malformed) -> Wrapped {
        guard let self else { throw Malformed("a field of a message") }
        return self
    }
}

/// A message that is read field by field.
package protocol FieldMessage {
    /// Reads what follows the kind.
    init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed)
}

extension FieldMessage {
    /// Parses a message; fails when the message is malformed.
    package init?(message bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        guard let kind = reader.number(UInt8.self), let message = try? Self(kind: kind, &reader), reader.isAtEnd
        else { return nil }
        self = message
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
