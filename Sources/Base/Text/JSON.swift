// SPDX-License-Identifier: Apache-2.0

/// A JSON value as a tree, for the few places that look deeper than one level. Members keep their order.
public enum JSON: Sendable, Equatable {
    case null
    case bool(Bool)
    /// A number as written, such as `1`, `-0.0` or `12345678901234567890`.
    case number(String)
    case string(String)
    case array([JSON])
    case object([Member])

    public struct Member: Sendable, Equatable {
        public var key: String
        public var value: JSON

        public init(_ key: String, _ value: JSON) {
            self.key = key
            self.value = value
        }
    }

    /// Compares values. The order of members does not matter. If a name is repeated, its last member counts.
    public static func == (left: JSON, right: JSON) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left == right
        case (.array(let left), .array(let right)): left == right
        case (.object(let leftMembers), .object(let rightMembers)): byKey(leftMembers) == byKey(rightMembers)
        case (.null, _), (.bool, _), (.number, _), (.string, _), (.array, _), (.object, _): false
        }
    }

    /// The values by name. A repeated name has its last value.
    package static func byKey(_ members: [Member]) -> [String: JSON] {
        Dictionary(members.map { ($0.key, $0.value) }) { _, last in last }
    }

    /// Parses an object or array.
    package init(_ text: some Sequence<UInt8>) throws(Malformed) {
        let bytes = Array(text)
        self = try bytes.span.withUnsafeBytes { raw throws(Malformed) in
            _ = try JSONScanner.members(of: raw)
            var builder = Builder(text: raw, position: raw.starts(with: [0xEF]) ? 3 : 0)
            return builder.value()
        }
    }

    /// Makes a value from text that `JSONScanner` has accepted as part of a document.
    package init(accepted text: UnsafeRawBufferPointer) {
        var builder = Builder(text: text, position: 0)
        self = builder.value()
    }

    /// The member with that name; the last one if there are several.
    public subscript(_ key: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.key == key }?.value
    }

    /// Whether an object in this value has two members of one name, which readers of JSON understand differently.
    package var repeatsName: Bool {
        switch self {
        case .null, .bool, .number, .string: false
        case .array(let items): items.contains { $0.repeatsName }
        case .object(let members):
            Set(members.map { Array($0.key.utf8) }).count < members.count || members.contains { $0.value.repeatsName }
        }
    }

    public var string: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    public var bool: Bool? {
        guard case .bool(let value) = self else { return nil }
        return value
    }

    public var array: [JSON]? {
        guard case .array(let value) = self else { return nil }
        return value
    }

    public var members: [Member]? {
        guard case .object(let value) = self else { return nil }
        return value
    }

    /// The value of a number without a fraction, in any notation.
    public var int: Int? {
        guard case .number(let text) = self else { return nil }
        return JSON.int(text)
    }

    package static func int(_ text: String) -> Int? {
        if let value = Int(text) { return value }
        guard let value = Double(text), value.rounded() == value, abs(value) < 9e15 else { return nil }
        return Int(value)
    }

    /// The value as compact JSON text.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }

    /// Builds a tree from accepted text; depth is bounded by the scanner.
    private struct Builder {
        let text: UnsafeRawBufferPointer
        var position: Int

        private var byte: UInt8 { position < text.count ? text[position] : 0 }

        private mutating func skipSpace() {
            while position < text.count, byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) { position += 1 }
        }

        private mutating func string() -> String {
            position += 1
            let start = position
            var hasEscapes = false
            while position < text.count, byte != UInt8(ascii: "\"") {
                if byte == UInt8(ascii: "\\") {
                    hasEscapes = true
                    position += 1
                }
                position += 1
            }
            let end = min(position, text.count)
            position += 1
            return JSONString.decode(UnsafeRawBufferPointer(rebasing: text[start..<end]), hasEscapes: hasEscapes)
        }

        mutating func value() -> JSON {
            skipSpace()
            switch byte {
            case UInt8(ascii: "{"):
                var members: [Member] = []
                position += 1
                skipSpace()
                while position < text.count, byte != UInt8(ascii: "}") {
                    let key = string()
                    skipSpace()
                    position += 1
                    members.append(Member(key, value()))
                    skipSpace()
                    if byte == UInt8(ascii: ",") {
                        position += 1
                        skipSpace()
                    }
                }
                position += 1
                return .object(members)
            case UInt8(ascii: "["):
                var items: [JSON] = []
                position += 1
                skipSpace()
                while position < text.count, byte != UInt8(ascii: "]") {
                    items.append(value())
                    skipSpace()
                    if byte == UInt8(ascii: ",") { position += 1 }
                    skipSpace()
                }
                position += 1
                return .array(items)
            case UInt8(ascii: "\""):
                return .string(string())
            case UInt8(ascii: "t"):
                position += 4
                return .bool(true)
            case UInt8(ascii: "f"):
                position += 5
                return .bool(false)
            case UInt8(ascii: "n"):
                position += 4
                return .null
            default:
                let start = position
                while position < text.count, !",]} \t\r\n".utf8.contains(byte) { position += 1 }
                // Always advance, so that the caller cannot loop. Accepted text never has an empty number.
                if position == start { position += 1 }
                return .number(String(decoding: text[start..<min(position, text.count)], as: UTF8.self))
            }
        }
    }
}
