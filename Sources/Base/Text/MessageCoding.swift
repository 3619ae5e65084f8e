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

    /// Appends whether there is a value, and the value.
    package mutating func append(optional field: (some MessageField)?) {
        append(field != nil)
        field?.write(to: &self)
    }

    package mutating func append(list: [some MessageField]) { append(list: list) { $1.write(to: &$0) } }
}

/// Reads a message that a `MessageWriter` has written.
package struct MessageReader {
    private var bytes: ArraySlice<UInt8>

    package init(_ bytes: [UInt8]) { self.bytes = bytes[...] }

    package var isAtEnd: Bool { bytes.isEmpty }

    /// Reads the next field.
    package mutating func read<Field: MessageField>(_: Field.Type = Field.self) throws(Malformed) -> Field {
        try Field(from: &self)
    }

    package mutating func optional<Field: MessageField>() throws(Malformed) -> Field? {
        try read(Bool.self) ? try read() : nil
    }

    /// Reads a block that is a text.
    package mutating func long() throws(Malformed) -> String {
        try String(validating: try read([UInt8].self), as: UTF8.self).field()
    }

    /// Reads a list of at most `maximum` elements.
    package mutating func list<Element>(
        maximum: Int,
        _ read: (inout MessageReader) throws(Malformed) -> Element
    ) throws(Malformed) -> [Element] {
        let count = Int(try self.read(UInt32.self))
        guard count <= maximum else { throw Malformed("a list of a message") }
        var list: [Element] = []
        for _ in 0..<count { list.append(try read(&self)) }
        return list
    }

    package mutating func list<Field: MessageField>(maximum: Int) throws(Malformed) -> [Field] {
        try list(maximum: maximum) { reader throws(Malformed) in try reader.read() }
    }

    package mutating func remaining() -> [UInt8] {
        defer { bytes = [] }
        return Array(bytes)
    }

    fileprivate mutating func read(_ count: Int) throws(Malformed) -> ArraySlice<UInt8> {
        guard bytes.count >= count else { throw Malformed("the length of a message") }
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
    package init(from reader: inout MessageReader) throws(Malformed) {
        self = try reader.read(Self.bitWidth / 8).reduce(0) { $0 << 8 | Self($1) }
    }
}

extension UInt8: MessageField {}
extension UInt16: MessageField {}
extension UInt32: MessageField {}
extension UInt64: MessageField {}
extension Int32: MessageField {}
extension Int64: MessageField {}

extension MessageField where Self: RawRepresentable, RawValue: MessageField {
    package func write(to writer: inout MessageWriter) { rawValue.write(to: &writer) }
    package init(from reader: inout MessageReader) throws(Malformed) {
        self = try Self(rawValue: try reader.read()).field()
    }
}

extension Bool: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(self) }
    package init(from reader: inout MessageReader) throws(Malformed) {
        switch try reader.read(UInt8.self) {
        case 0: self = false
        case 1: self = true
        default: throw Malformed("a flag of a message")
        }
    }
}

/// A text, which is cut if it is too long.
extension String: MessageField {
    package func write(to writer: inout MessageWriter) { writer.append(text: self) }
    package init(from reader: inout MessageReader) throws(Malformed) {
        let length = try reader.read(UInt16.self)
        guard length <= MessageWriter.maximumText else { throw Malformed("a text of a message") }
        self = try String(validating: try reader.read(Int(length)), as: UTF8.self).field()
    }
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
    package init(from reader: inout MessageReader) throws(Malformed) {
        self = Array(try reader.read(Int(try reader.read(UInt32.self))))
    }
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
    package init?(bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        guard let kind = try? reader.read(UInt8.self), let message = try? Self(kind: kind, &reader), reader.isAtEnd
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
