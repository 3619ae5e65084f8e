// SPDX-License-Identifier: Apache-2.0

/// A text for people as it stands in the sources, in English: `"\(count) tries are left"` is the key
/// `{0} tries are left` of a catalogue, with one value.
package struct Phrase: ExpressibleByStringInterpolation, CustomStringConvertible, Sendable, Equatable {
    /// A value is data, or a text for people inside of another one, such as a reason.
    package enum Value: Sendable, Equatable {
        case text(String)
        case phrase(Phrase)
    }

    /// The text with a placeholder for each value. `{` and `}` of the text itself are not allowed.
    package let key: String
    package let values: [Value]

    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var key = ""
        fileprivate var values: [Value] = []

        package init(literalCapacity: Int, interpolationCount: Int) { key.reserveCapacity(literalCapacity) }

        package mutating func appendLiteral(_ literal: String) { key += literal }

        package mutating func appendInterpolation<T>(_ value: T) { append(.text(String(describing: value))) }

        /// A phrase that is one value of any kind is that value.
        package mutating func appendInterpolation(_ value: Phrase) {
            if value.key == Phrase.verbatimKey, let only = value.values.first {
                append(only)
            } else {
                append(.phrase(value))
            }
        }

        @available(*, unavailable, message: "unwrap the value")
        package mutating func appendInterpolation<T>(_ value: T?) {}

        private mutating func append(_ value: Value) {
            key += "{\(values.count)}"
            values.append(value)
        }
    }

    private static let verbatimKey = "{0}"

    package init(stringLiteral key: String) {
        self.key = key
        values = []
    }

    package init(stringInterpolation parts: StringInterpolation) {
        key = parts.key
        values = parts.values
    }

    /// A text of somebody else, which is not translated.
    package init(verbatim text: String) { self.init(Self.verbatimKey, [.text(text)]) }

    private init(_ key: String, _ values: [Value]) {
        self.key = key
        self.values = values
    }

    /// The text in English.
    package var description: String { text { _ in nil } }

    /// The text with the translations that `lookUp` finds for keys. Without one, or with one that has other
    /// placeholders, a key is English.
    package func text(_ lookUp: (_ key: String) -> String?) -> String {
        let values = values.map { value in
            switch value {
            case .text(let text): text
            case .phrase(let phrase): phrase.text(lookUp)
            }
        }
        return lookUp(key).flatMap { Self.filled($0, values) } ?? Self.filled(key, values) ?? key
    }

    /// Whether both say the same in English.
    package static func == (left: Phrase, right: Phrase) -> Bool {
        left.description.utf8.elementsEqual(right.description.utf8)
    }

    package static func + (left: Phrase, right: Phrase) -> Phrase {
        var key = left.key
        // The placeholders of `right` follow those of `left`.
        for (index, part) in right.parts.enumerated() {
            key += index > 0 ? "{\(left.values.count + index - 1)}\(part)" : String(part)
        }
        return Phrase(key, left.values + right.values)
    }

    /// The phrases with a separator between them.
    package static func joined(_ phrases: [Phrase], by separator: String) -> Phrase {
        guard let first = phrases.first else { return "" }
        return phrases.dropFirst().reduce(first) { "\($0)" + Phrase(stringLiteral: separator) + "\($1)" }
    }

    /// The text between the placeholders.
    private var parts: [Substring] {
        key.split(separator: "{", omittingEmptySubsequences: false).enumerated().map { index, part in
            index == 0 ? part : part.drop { $0 != "}" }.dropFirst()
        }
    }

    /// Puts the values into a text, at `{0}`, `{1}` and so on. They are not looked at again.
    /// - Returns: nil if the text has a placeholder without a value, or lacks one.
    private static func filled(_ text: String, _ values: [String]) -> String? {
        guard !values.isEmpty else { return text }
        var result: [UInt8] = []
        var seen: Set<Int> = []
        var rest = text.utf8[...]
        while let open = rest.firstIndex(of: UInt8(ascii: "{")) {
            result += rest[..<open]
            guard let close = rest[open...].firstIndex(of: UInt8(ascii: "}")),
                let number = Int(String(decoding: rest[rest.index(after: open)..<close], as: UTF8.self)),
                values.indices.contains(number)
            else { return nil }
            seen.insert(number)
            result += values[number].utf8
            rest = rest[rest.index(after: close)...]
        }
        guard seen.count == values.count else { return nil }
        return String(decoding: result + rest, as: UTF8.self)
    }
}

// MARK: Messages

/// The form of a phrase in messages of the protocol. docs/protocol.md, Texts.
extension Phrase {
    /// The end of the name of the member with the phrase of a text.
    package static let memberSuffix = "Words"
    /// A phrase of a message has at most so many levels, values of all levels, and bytes in a template.
    private static let maximumDepth = 8
    private static let maximumValues = 64
    private static let maximumTemplate = 2000

    /// nil: the English text says all of it.
    package var words: JSON? { values.isEmpty || key == Self.verbatimKey ? nil : json }

    private var json: JSON {
        let values = values.map { value in
            switch value {
            case .text(let text): JSON.string(text)
            case .phrase(let phrase): phrase.json
            }
        }
        let template = JSON.Member("template", .string(key))
        return .object(values.isEmpty ? [template] : [template, JSON.Member("values", .array(values))])
    }

    /// Reads a text of a message. Without a phrase, or with one that is malformed or says something else, the English
    /// text is its own template.
    package init?(_ member: String, of message: JSON) {
        guard let text = message[member]?.string else { return nil }
        var left = Self.maximumValues
        if let words = message[member + Self.memberSuffix], let phrase = Phrase(words, depth: 0, &left),
            phrase.description.utf8.elementsEqual(text.utf8)
        {
            self = phrase
        } else {
            self = Self.isTemplate(text) ? Phrase(stringLiteral: text) : Phrase(verbatim: text)
        }
    }

    /// A template is looked up, which takes long for text that cannot be compared.
    private static func isTemplate(_ text: String) -> Bool { text.utf8.count <= maximumTemplate && text.isComparable }

    private init?(_ words: JSON, depth: Int, _ left: inout Int) {
        let list = words["values"]?.array ?? []
        left -= list.count
        guard depth < Self.maximumDepth, left >= 0, let key = words["template"]?.string, Self.isTemplate(key)
        else { return nil }
        var values: [Value] = []
        for entry in list {
            if let text = entry.string {
                values.append(.text(text))
            } else if let phrase = Phrase(entry, depth: depth + 1, &left) {
                values.append(.phrase(phrase))
            } else {
                return nil
            }
        }
        self.init(key, values)
        // Each value is there once, so the text is not longer than the message.
        guard parts.count == values.count + 1 else { return nil }
    }
}

extension JSONWriter {
    /// Writes a text in English, and its phrase if it has values; nil is `null`.
    package mutating func member(_ name: StaticString, _ phrase: Phrase?) {
        member(name, phrase?.description)
        guard let words = phrase?.words else { return }
        key("\(name)\(Phrase.memberSuffix)")
        value(words)
    }
}

/// A phrase in a message between the programs of badged.
extension Phrase: MessageField {
    package func write(to writer: inout MessageWriter) {
        writer.append(text: key)
        writer.append(list: values) { writer, value in
            switch value {
            case .text(let text): writer.append(fields: [true, text])
            case .phrase(let phrase): writer.append(fields: [false, phrase])
            }
        }
    }

    package init(from reader: inout MessageReader) throws(Malformed) { try self.init(&reader, depth: 0) }

    private init(_ reader: inout MessageReader, depth: Int) throws(Malformed) {
        guard depth < Self.maximumDepth else { throw Malformed("a phrase of a message") }
        key = try reader.read()
        values = try reader.list(maximum: Self.maximumValues) { reader throws(Malformed) in
            try reader.read(Bool.self) ? .text(try reader.read()) : .phrase(try Phrase(&reader, depth: depth + 1))
        }
    }
}
