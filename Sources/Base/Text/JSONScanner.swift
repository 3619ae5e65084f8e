// SPDX-License-Identifier: Apache-2.0

package enum JSONKind: Sendable {
    case null, bool, number, string, array, object
}

/// One member of the outermost object. Ranges are in bytes of the scanned text.
package struct JSONMember: Sendable {
    /// The name without the quotes.
    package var key: Range<Int>
    package var keyHasEscapes: Bool
    package var kind: JSONKind
    /// The value as written; a string includes its quotes.
    package var value: Range<Int>
    package var valueHasEscapes: Bool
}

/// Checks one JSON text (RFC 8259) in place and records the ranges of the members of its outermost object.
///
/// The scanner copies nothing, so a PIN goes from the socket's buffer directly to wiped memory. The order of the checks
/// and the offsets are those of the SDK, because its clients compare error texts. Unlike the SDK it refuses control
/// characters and lone surrogates in strings, so that every string is Unicode and can be repeated in an answer. The
/// depth is bounded, and so is the stack.
package struct JSONScanner {
    package static let maximumDepth = 1024

    /// The message texts of the SDK, which INVALID reports with the offset in bytes.
    private enum Fault: String {
        case illegalValue = "illegal value"
        case unterminatedObject = "unterminated object"
        case unterminatedArray = "unterminated array"
        case unterminatedString = "unterminated string"
        case missingNameSeparator = "missing name separator"
        case missingValueSeparator = "missing value separator"
        case missingObject = "object is missing after a comma"
        case illegalNumber = "illegal number"
        case terminationByNumber = "invalid termination by number"
        case illegalEscape = "invalid escape sequence"
        case illegalUTF8 = "invalid UTF8 string"
        case controlCharacter = "control character in a string"
        case combiningMarks = "too many combining marks in a row"
        case loneSurrogate = "lone surrogate in a string"
        case deepNesting = "too deeply nested document"
        case manyMembers = "too many members"
        case garbageAtEnd = "garbage at the end of the document"
    }

    private let text: UnsafeRawBufferPointer
    private let limit: Int
    private var position = 0
    private var depth = 0
    private var sawEscape = false
    private var members: [JSONMember] = []

    private init(_ text: UnsafeRawBufferPointer, _ limit: Int) {
        self.text = text
        self.limit = limit
    }

    /// Returns the members of the outermost object in their order, at most `limit`; none for an array.
    package static func members(
        of text: UnsafeRawBufferPointer,
        limit: Int = .max
    ) throws(Malformed) -> [JSONMember] {
        var scanner = JSONScanner(text, limit)
        scanner.members.reserveCapacity(6)
        try scanner.document()
        return scanner.members
    }

    // MARK: Bytes

    private var byte: UInt8? { position < text.count ? text[position] : nil }

    private func failure(_ fault: Fault, at offset: Int? = nil) -> Malformed {
        Malformed("\(fault.rawValue) (offset: \(offset ?? position))")
    }

    /// Skips white space. Returns false at the end of the text.
    private mutating func skipSpace() -> Bool {
        while let next = byte {
            guard next == 0x20 || next == 0x0A || next == 0x0D || next == 0x09 else { return true }
            position += 1
        }
        return false
    }

    /// Consumes and returns the next structural character. Any other character, also consumed, and the end return 0.
    private mutating func token() -> UInt8 {
        guard skipSpace(), let next = byte else { return 0 }
        position += 1
        switch next {
        case UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: ":"),
            UInt8(ascii: ","), UInt8(ascii: "\""):
            return next
        default:
            return 0
        }
    }

    // MARK: Grammar

    private mutating func document() throws(Malformed) {
        if text.count >= 3, text[0] == 0xEF, text[1] == 0xBB, text[2] == 0xBF { position = 3 }
        switch token() {
        case UInt8(ascii: "{"): try object()
        case UInt8(ascii: "["): try array()
        default: throw failure(.illegalValue)
        }
        if skipSpace() { throw failure(.garbageAtEnd) }
    }

    private mutating func object() throws(Malformed) {
        depth += 1
        guard depth <= Self.maximumDepth else { throw failure(.deepNesting) }
        var next = token()
        while next == UInt8(ascii: "\"") {
            try member()
            next = token()
            guard next == UInt8(ascii: ",") else { break }
            next = token()
            if next == UInt8(ascii: "}") { throw failure(.missingObject) }
        }
        guard next == UInt8(ascii: "}") else { throw failure(.unterminatedObject) }
        depth -= 1
    }

    private mutating func member() throws(Malformed) {
        guard depth > 1 || members.count < limit else { throw failure(.manyMembers) }
        let keyStart = position
        sawEscape = false
        try string()
        let key = keyStart..<position - 1
        let keyHasEscapes = sawEscape
        guard token() == UInt8(ascii: ":") else { throw failure(.missingNameSeparator) }
        guard skipSpace() else { throw failure(.unterminatedObject) }
        let start = position
        sawEscape = false
        let kind = try value()
        guard depth == 1 else { return }
        members.append(
            JSONMember(
                key: key,
                keyHasEscapes: keyHasEscapes,
                kind: kind,
                value: start..<position,
                valueHasEscapes: sawEscape
            )
        )
    }

    private mutating func array() throws(Malformed) {
        depth += 1
        guard depth <= Self.maximumDepth else { throw failure(.deepNesting) }
        guard skipSpace() else { throw failure(.unterminatedArray) }
        if byte == UInt8(ascii: "]") {
            position += 1
            depth -= 1
            return
        }
        while true {
            guard skipSpace() else { throw failure(.unterminatedArray) }
            _ = try value()
            let next = token()
            if next == UInt8(ascii: "]") { break }
            guard next == UInt8(ascii: ",") else {
                throw failure(skipSpace() ? .missingValueSeparator : .unterminatedArray)
            }
        }
        depth -= 1
    }

    private mutating func value() throws(Malformed) -> JSONKind {
        guard let first = byte else { throw failure(.illegalValue) }
        position += 1
        switch first {
        case UInt8(ascii: "n"):
            try literal("ull")
            return .null
        case UInt8(ascii: "t"):
            try literal("rue")
            return .bool
        case UInt8(ascii: "f"):
            try literal("alse")
            return .bool
        case UInt8(ascii: "\""):
            try string()
            return .string
        case UInt8(ascii: "["):
            try array()
            return .array
        case UInt8(ascii: "{"):
            try object()
            return .object
        case UInt8(ascii: ","):
            throw failure(.illegalValue)
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            throw failure(.missingObject)
        default:
            position -= 1
            try number()
            return .number
        }
    }

    private mutating func literal(_ rest: StaticString) throws(Malformed) {
        for index in 0..<rest.utf8CodeUnitCount {
            guard byte == rest.utf8Start[index] else { throw failure(.illegalValue) }
            position += 1
        }
    }

    private mutating func digits() -> Int {
        let start = position
        while let next = byte, next >= 0x30, next <= 0x39 { position += 1 }
        return position - start
    }

    private mutating func number() throws(Malformed) {
        if byte == UInt8(ascii: "-") { position += 1 }
        if byte == UInt8(ascii: "0") {
            position += 1
        } else if digits() == 0 {
            throw failure(.illegalNumber)
        }
        if byte == UInt8(ascii: ".") {
            position += 1
            if digits() == 0 { throw failure(.illegalNumber) }
        }
        if byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") {
            position += 1
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { position += 1 }
            if digits() == 0 { throw failure(.illegalNumber) }
        }
        if position >= text.count { throw failure(.terminationByNumber) }
    }

    /// Scans from after the opening quote to after the closing quote.
    private mutating func string() throws(Malformed) {
        var marks = MarkLimit()
        while let next = byte {
            if next == UInt8(ascii: "\"") { break }
            let start = position
            var scalar = Unicode.Scalar(next)
            if next == UInt8(ascii: "\\") {
                sawEscape = true
                scalar = try escape()
            } else if next < 0x20 {
                throw failure(.controlCharacter)
            } else if next < 0x80 {
                position += 1
            } else {
                scalar = try multiByteCharacter(next)
            }
            guard marks.admits(scalar) else { throw failure(.combiningMarks, at: start) }
        }
        position += 1
        // A document cannot end with a string, so the end of the text here is an error like a missing quote.
        guard position < text.count else {
            position = text.count
            throw failure(.unterminatedString)
        }
    }

    /// - Returns: the scalar; for an escape of one letter, any without a combining class.
    private mutating func escape() throws(Malformed) -> Unicode.Scalar {
        let start = position
        position += 1
        guard let kind = byte else { throw failure(.illegalEscape) }
        position += 1
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return Unicode.Scalar(kind)
        case UInt8(ascii: "u"):
            let unit = try codeUnit()
            if let scalar = Unicode.Scalar(unit) { return scalar }
            let isPair = unit < 0xDC00 && byte == UInt8(ascii: "\\") && position + 1 < text.count
            guard isPair, text[position + 1] == UInt8(ascii: "u") else {
                throw failure(.loneSurrogate, at: start)
            }
            position += 2
            let low = try codeUnit()
            let code = 0x10000 + (UInt32(unit) & 0x3FF) << 10 + UInt32(low) & 0x3FF
            guard low & 0xFC00 == 0xDC00, let scalar = Unicode.Scalar(code) else {
                throw failure(.loneSurrogate, at: start)
            }
            return scalar
        default:
            throw failure(.illegalEscape)
        }
    }

    /// Reads the four digits after `\u`.
    private mutating func codeUnit() throws(Malformed) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = byte.flatMap(Hex.value) else { throw failure(.illegalEscape) }
            unit = unit << 4 | UInt16(digit)
            position += 1
        }
        return unit
    }

    /// Checks a UTF-8 sequence. RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF.
    private mutating func multiByteCharacter(_ lead: UInt8) throws(Malformed) -> Unicode.Scalar {
        let count: Int
        var lower: UInt8 = 0x80
        var upper: UInt8 = 0xBF
        switch lead {
        case 0xC2...0xDF: count = 1
        case 0xE0: (count, lower) = (2, 0xA0)
        case 0xED: (count, upper) = (2, 0x9F)
        case 0xE1...0xEF: count = 2
        case 0xF0: (count, lower) = (3, 0x90)
        case 0xF1...0xF3: count = 3
        case 0xF4: (count, upper) = (3, 0x8F)
        default: throw failure(.illegalUTF8)
        }
        var code = UInt32(lead) & (0x3F >> UInt32(count))
        for index in 1...count {
            guard position + index < text.count else { throw failure(.illegalUTF8) }
            let next = text[position + index]
            guard next >= lower, next <= upper else { throw failure(.illegalUTF8) }
            lower = 0x80
            upper = 0xBF
            code = code << 6 | UInt32(next & 0x3F)
        }
        position += count + 1
        // The bytes were checked, so there is such a scalar.
        return Unicode.Scalar(code) ?? "?"
    }
}
