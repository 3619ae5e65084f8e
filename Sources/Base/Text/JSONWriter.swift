// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Writes compact JSON into a growing buffer, in the order of the calls.
package struct JSONWriter {
    package private(set) var bytes: [UInt8] = []
    private var needsComma = false

    package init() { bytes.reserveCapacity(512) }

    /// The largest memory in bytes that an empty writer keeps.
    private static let keptCapacity = 16_384

    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
        needsComma = false
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    /// Empties the writer and reserves memory for a message with a secret, so that its bytes are not moved.
    package mutating func prepareForSecret(_ capacity: Int) {
        removeAll()
        bytes.reserveCapacity(capacity)
    }

    /// Wipes what was written.
    package mutating func wipe() {
        bytes.withUnsafeMutableBytes { memory in
            if let base = memory.baseAddress { explicit_bzero(base, memory.count) }
        }
        removeAll()
    }

    package mutating func beginObject() {
        separate()
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
    }

    package mutating func endObject() {
        bytes.append(UInt8(ascii: "}"))
        needsComma = true
    }

    package mutating func beginArray() {
        separate()
        bytes.append(UInt8(ascii: "["))
        needsComma = false
    }

    package mutating func endArray() {
        bytes.append(UInt8(ascii: "]"))
        needsComma = true
    }

    package mutating func key(_ name: StaticString) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    package mutating func key(_ name: String) {
        string(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    package mutating func string(_ text: String) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        var copy = text
        copy.withUTF8 { utf8 in
            for byte in utf8 {
                switch byte {
                case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                    bytes.append(UInt8(ascii: "\\"))
                    bytes.append(byte)
                case 0x08: bytes.append(contentsOf: "\\b".utf8)
                case 0x09: bytes.append(contentsOf: "\\t".utf8)
                case 0x0A: bytes.append(contentsOf: "\\n".utf8)
                case 0x0C: bytes.append(contentsOf: "\\f".utf8)
                case 0x0D: bytes.append(contentsOf: "\\r".utf8)
                case 0..<0x20:
                    bytes.append(contentsOf: "\\u00".utf8)
                    bytes.append(Hex.digit(byte >> 4))
                    bytes.append(Hex.digit(byte))
                default: bytes.append(byte)
                }
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Writes a string of ASCII characters that need no escape, without a copy.
    package mutating func ascii(_ characters: some Sequence<UInt8>) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: characters)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Writes a string of hexadecimal digits, without a copy.
    package mutating func hex(_ data: UnsafeRawBufferPointer) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        for byte in data {
            bytes.append(Hex.digit(byte >> 4))
            bytes.append(Hex.digit(byte))
        }
        bytes.append(UInt8(ascii: "\""))
    }

    package mutating func bool(_ value: Bool) {
        raw(value ? "true" : "false")
    }

    package mutating func int(_ value: Int) {
        raw(String(value))
    }

    package mutating func null() {
        raw("null")
    }

    private mutating func raw(_ text: String) {
        separate()
        bytes.append(contentsOf: text.utf8)
    }

    /// Writes text that is JSON already.
    package mutating func raw(_ text: some Sequence<UInt8>) {
        separate()
        bytes.append(contentsOf: text)
    }

    package mutating func value(_ json: JSON) {
        switch json {
        case .null: null()
        case .bool(let value): bool(value)
        case .number(let text): raw(text)
        case .string(let text): string(text)
        case .array(let items):
            beginArray()
            for item in items { value(item) }
            endArray()
        case .object(let members):
            beginObject()
            for member in members {
                key(member.key)
                value(member.value)
            }
            endObject()
        }
    }
}

// MARK: Members of an object

extension JSONWriter {
    /// Writes a member whose value is a string; nil is `null`.
    package mutating func member(_ name: StaticString, _ value: String?) {
        key(name)
        if let value { string(value) } else { null() }
    }

    package mutating func member(_ name: StaticString, _ value: Bool) {
        key(name)
        bool(value)
    }

    /// Writes a member whose value is a whole number; nil is `null`.
    package mutating func member(_ name: StaticString, _ value: (some BinaryInteger)?) {
        key(name)
        if let value { int(Int(clamping: value)) } else { null() }
    }

    /// Writes a number with one digit after the point. The value nil, or one far beyond any measurement, is `null`.
    package mutating func member(_ name: StaticString, tenths value: Double?) {
        key(name)
        guard let value, abs(value) < 1e9 else { return null() }
        let tenths = Int((value * 10).rounded())
        let sign = tenths < 0 ? "-" : ""
        self.value(.number("\(sign)\(tenths.magnitude / 10).\(tenths.magnitude % 10)"))
    }

    package mutating func member(_ name: StaticString, _ value: JSON) {
        key(name)
        self.value(value)
    }

    package mutating func member(_ name: StaticString, _ values: [String]) {
        array(name, values) { $0.string($1) }
    }

    package mutating func member(_ name: StaticString, _ values: [some BinaryInteger]) {
        array(name, values) { $0.int(Int(clamping: $1)) }
    }

    /// Writes a member whose value is an object, with the members that `body` writes.
    package mutating func object(_ name: StaticString, _ body: (inout JSONWriter) -> Void) {
        key(name)
        object(body)
    }

    /// The text of an object with the members that `body` writes.
    package static func bytes(_ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(body)
        return writer.bytes
    }

    /// Writes an object with the members that `body` writes.
    package mutating func object(_ body: (inout JSONWriter) -> Void) {
        beginObject()
        body(&self)
        endObject()
    }

    /// Writes a member whose value is an array; `write` writes one element.
    package mutating func array<Element>(
        _ name: StaticString,
        _ elements: some Sequence<Element>,
        _ write: (inout JSONWriter, Element) -> Void
    ) {
        key(name)
        beginArray()
        for element in elements { write(&self, element) }
        endArray()
    }
}
