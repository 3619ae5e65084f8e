// SPDX-License-Identifier: GPL-3.0-or-later
import Document
package import Text

/// A value of a document as JSON, and how long it may be. docs/protocol/mdoc.md, The result.
package enum MdocValue {
    // MARK: Length

    /// A value of MDOC has at most this many bytes, with the comma after it. It is known before anything is written.
    package static func length(of value: CBOR) -> Int {
        switch value.kind {
        case .text: value.withEncoded { length(of: $0) }
        // An image has its form and its size beside it.
        case .bytes: value.withEncoded { $0.count * 4 / 3 + 128 }
        case .unsigned, .negative: 24
        case .float: 32
        case .bool, .null, .simple: 8
        case .tag: value.tagged.map { length(of: $0.content) } ?? 8
        case .array: (value.array ?? []).reduce(4) { $0 + length(of: $1) }
        case .map: (value.map ?? []).reduce(4) { $0 + keyLength($1.key) + length(of: $1.value) }
        }
    }

    /// The same for a text.
    package static func length(of text: String) -> Int { length(of: text.utf8) }

    private static func keyLength(_ key: CBOR) -> Int {
        key.withEncoded { key.kind == .text ? length(of: $0) : 2 * $0.count + 24 } + 1
    }

    /// Quotes, a comma, and what `JSONWriter` makes of each byte.
    private static func length(of utf8: some Sequence<UInt8>) -> Int {
        utf8.reduce(4) { length, byte in
            switch byte {
            case 0..<0x20: length + 6
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): length + 2
            default: length + 1
            }
        }
    }

    // MARK: Writing

    /// Writes a value. Its depth is bounded by `CBOR.Limits`. `isPortrait`: bytes are an image.
    package static func write(_ value: CBOR, isPortrait: Bool = false, to writer: inout JSONWriter) {
        switch value.kind {
        case .text: writer.string(value.text ?? "")
        case .unsigned, .negative: number(value, to: &writer)
        case .bool: writer.bool(value.bool ?? false)
        case .null, .simple: writer.null()
        case .float: float(value.float ?? .nan, to: &writer)
        case .bytes:
            let bytes = value.bytes ?? []
            if isPortrait {
                writer.object { write(DocumentImage(bytes), to: &$0) }
            } else {
                writer.string(Base64.standard.encode(bytes))
            }
        // A date, or another text or number with a meaning.
        case .tag: if let content = value.tagged?.content { write(content, to: &writer) } else { writer.null() }
        case .array:
            writer.beginArray()
            for item in value.array ?? [] { write(item, to: &writer) }
            writer.endArray()
        case .map:
            writer.object { object in
                for (key, value) in value.map ?? [] {
                    object.key(key.text ?? key.integer.map(String.init) ?? Hex.encode(key.encoded))
                    write(value, to: &object)
                }
            }
        }
    }

    private static func number(_ value: CBOR, to writer: inout JSONWriter) {
        if let number = value.integer { return writer.value(.number(String(number))) }
        // A negative number beyond 64 bits has no form here.
        if let number = value.unsigned { writer.value(.number(String(number))) } else { writer.null() }
    }

    private static func float(_ value: Double, to writer: inout JSONWriter) {
        if value.isFinite { writer.value(.number("\(value)")) } else { writer.null() }
    }

    private static func write(_ image: DocumentImage, to object: inout JSONWriter) {
        object.member("format", image.format.rawValue)
        object.member("width", image.width)
        object.member("height", image.height)
        object.member("data", Base64.standard.encode(image.data))
    }
}
