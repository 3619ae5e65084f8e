// SPDX-License-Identifier: Apache-2.0

/// One item of CBOR, read from bytes of a stranger. RFC 8949.
///
/// An item is a place in bytes that are kept as they came, because hashes and signatures cover those; they are wiped when
/// the last item of them is gone. Everything is checked when the bytes are read, so a later access cannot fail for want
/// of form: no duplicate keys, no bytes after the end, valid UTF-8 that can be compared, and the bounds of `Limits`. An
/// access to a part takes time for what stands before that part in the same array or map.
package struct CBOR: Sendable {
    /// What no honest message reaches; a message that does is refused.
    package struct Limits: Sendable {
        /// The bytes of a message.
        package var bytes = 2 << 20
        /// Arrays, maps and tags in one another. Bytes that hold encoded CBOR count anew.
        package var depth = 16
        /// The elements of one array or the pairs of one map.
        package var entries = 4096
        /// All items of a message.
        package var items = 1 << 16

        package init() {}
    }

    /// The kinds of items. A number beyond 64 bits is a tag, as is a date.
    package enum Kind: Sendable, Equatable {
        case unsigned, negative, bytes, text, array, map, tag, bool, null, float, simple
    }

    private let source: Source
    private let range: Range<Int>

    /// Reads bytes that are one item.
    package init(_ bytes: [UInt8], limits: Limits = Limits()) throws(Malformed) {
        try self.init(Secret(bytes), limits: limits)
    }

    /// Reads secret bytes that are one item.
    package init(_ bytes: consuming Secret, limits: Limits = Limits()) throws(Malformed) {
        let source = Source(bytes, limits)
        try self.init(source, 0..<source.bytes.count)
    }

    private init(_ source: Source, _ range: Range<Int>) throws(Malformed) {
        let most = source.limits.bytes
        guard range.count <= most else { throw Malformed("the CBOR is longer than \(most) bytes") }
        try source.bytes.withBytes { bytes throws(Malformed) in
            var check = Check(bytes: bytes, end: range.upperBound, limits: source.limits)
            let end = try check.item(at: range.lowerBound, depth: 0)
            guard end == range.upperBound else { throw Malformed("bytes follow the CBOR") }
        }
        self.source = source
        self.range = range
    }

    private init(checked range: Range<Int>, of source: Source) {
        self.source = source
        self.range = range
    }

    // MARK: Values

    /// The kind of the item.
    package var kind: Kind {
        switch (head.major, head.information) {
        case (0, _): .unsigned
        case (1, _): .negative
        case (2, _): .bytes
        case (3, _): .text
        case (4, _): .array
        case (5, _): .map
        case (6, _): .tag
        case (_, 20), (_, 21): .bool
        case (_, 22): .null
        case (_, 25...27): .float
        default: .simple
        }
    }

    /// The bytes of the item as they came, with its head.
    package var encoded: [UInt8] { withEncoded { Array($0) } }

    /// Lends the bytes of the item as they came, with its head.
    package func withEncoded<Value, Fault: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Fault) -> Value
    ) throws(Fault) -> Value {
        try source.bytes.withBytes { bytes throws(Fault) in try body(UnsafeRawBufferPointer(rebasing: bytes[range])) }
    }

    /// A number from 0 to 2^64 - 1.
    package var unsigned: UInt64? { kind == .unsigned ? head.argument : nil }

    /// A whole number of 64 bits with a sign.
    package var integer: Int64? {
        switch kind {
        case .unsigned: Int64(exactly: head.argument)
        case .negative: Int64(exactly: head.argument).map { -1 - $0 }
        default: nil
        }
    }

    /// A number with a fraction, of 2, 4 or 8 bytes.
    package var float: Double? {
        guard kind == .float else { return nil }
        return switch head.information {
        case 25: Double(Float16(bitPattern: UInt16(truncatingIfNeeded: head.argument)))
        case 26: Double(Float(bitPattern: UInt32(truncatingIfNeeded: head.argument)))
        default: Double(bitPattern: head.argument)
        }
    }

    /// True or false.
    package var bool: Bool? { kind == .bool ? head.information == 21 : nil }

    package var isNull: Bool { kind == .null }

    package var text: String? {
        guard kind == .text else { return nil }
        return chunks.withBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// A copy of a byte string.
    package var bytes: [UInt8]? {
        guard kind == .bytes else { return nil }
        return chunks.withBytes { Array($0) }
    }

    /// A copy of a byte string that is a secret.
    package var secret: Secret? { kind == .bytes ? chunks : nil }

    /// Whether the item is this text.
    package func isText(_ text: String) -> Bool {
        guard kind == .text else { return false }
        return chunks.withBytes { $0.elementsEqual(text.utf8) }
    }

    /// The content of a text or byte string. One with an indefinite length has its content in parts.
    private var chunks: Secret {
        source.bytes.withBytes { bytes in
            guard head.isIndefinite else { return Secret(bytes[range.lowerBound + head.count..<range.upperBound]) }
            // Each part has a length of its own.
            let parts = children.map { $0.range.lowerBound + $0.head.count..<$0.range.upperBound }
            return Secret(count: parts.reduce(0) { $0 + $1.count }) { content in
                var position = 0
                for part in parts {
                    UnsafeMutableRawBufferPointer(rebasing: content[position...]).copyBytes(from: bytes[part])
                    position += part.count
                }
            }
        }
    }

    // MARK: Parts

    /// The elements of an array.
    package var array: [CBOR]? { kind == .array ? children : nil }

    /// The pairs of a map, in the order in which they came.
    package var map: [(key: CBOR, value: CBOR)]? {
        guard kind == .map else { return nil }
        let all = children
        return stride(from: 0, to: all.count, by: 2).map { (all[$0], all[$0 + 1]) }
    }

    /// The value of a map for a key that is a text; nil for any other item.
    package subscript(_ key: String) -> CBOR? { map?.first { $0.key.isText(key) }?.value }

    /// The value of a map for a key that is a whole number; nil for any other item.
    package subscript(_ key: Int64) -> CBOR? { map?.first { $0.key.integer == key }?.value }

    /// The number and the content of a tag.
    package var tagged: (tag: UInt64, content: CBOR)? {
        guard kind == .tag, let content = children.first else { return nil }
        return (head.argument, content)
    }

    /// The content of a tag with this number, or of an item without any tag the item itself.
    package func untagged(_ tag: UInt64) -> CBOR? {
        guard let (number, content) = tagged else { return self }
        return number == tag ? content : nil
    }

    /// Reads the item whose encoding is in a byte string with tag 24. RFC 8949, 3.4.5.1.
    package func embedded() throws(Malformed) -> CBOR {
        guard let (tag, content) = tagged, tag == 24 else { throw Malformed("no encoded CBOR (tag 24)") }
        return try content.decoded()
    }

    /// Reads the item whose encoding is in a byte string.
    package func decoded() throws(Malformed) -> CBOR {
        guard kind == .bytes else { throw Malformed("no byte string") }
        guard !head.isIndefinite else { return try CBOR(chunks, limits: source.limits) }
        return try CBOR(source, range.lowerBound + head.count..<range.upperBound)
    }

    private var head: Head { source.bytes.withBytes { Head(checked: $0, at: range.lowerBound) } }

    private var children: [CBOR] {
        source.bytes.withBytes { bytes in
            let head = head
            var count = head.childCount
            var position = range.lowerBound + head.count
            var items: [CBOR] = []
            while count != 0, bytes[position] != Head.breakCode {
                let end = Head.end(checked: bytes, at: position)
                items.append(CBOR(checked: position..<end, of: source))
                position = end
                count -= 1
            }
            return items
        }
    }
}

/// The bytes of a message, which are wiped at the end.
private final class Source: Sendable {
    let bytes: Secret
    let limits: CBOR.Limits

    init(_ bytes: consuming Secret, _ limits: CBOR.Limits) {
        self.bytes = bytes
        self.limits = limits
    }
}

/// The first bytes of an item: its major type, and the argument. RFC 8949, 3.
private struct Head {
    /// Ends an item whose length is indefinite.
    static let breakCode: UInt8 = 0xFF

    let major: UInt8
    let information: UInt8
    let argument: UInt64
    /// The length of the head in bytes.
    let count: Int

    var isIndefinite: Bool { information == 31 }

    /// The number of items that follow the head as its content; -1 if a break ends them.
    var childCount: Int {
        switch major {
        case 2, 3: isIndefinite ? -1 : 0
        case 4: isIndefinite ? -1 : Int(argument)
        case 5: isIndefinite ? -1 : 2 * Int(argument)
        case 6: 1
        default: 0
        }
    }

    /// The number of bytes that follow the head as its content.
    var byteCount: Int { (major == 2 || major == 3) && !isIndefinite ? Int(argument) : 0 }

    /// Reads a head that has been checked.
    init(checked bytes: UnsafeRawBufferPointer, at position: Int) {
        let first = bytes[position]
        major = first >> 5
        information = first & 0x1F
        count = 1 + Head.argumentCount(information)
        argument =
            count == 1
            ? UInt64(information) : bytes[position + 1..<position + count].reduce(0) { $0 << 8 | UInt64($1) }
    }

    static func argumentCount(_ information: UInt8) -> Int {
        switch information {
        case 24: 1
        case 25: 2
        case 26: 4
        case 27: 8
        default: 0
        }
    }

    /// The end of the item at `position`, which has been checked.
    static func end(checked bytes: UnsafeRawBufferPointer, at position: Int) -> Int {
        let head = Head(checked: bytes, at: position)
        var count = head.childCount
        var end = position + head.count + head.byteCount
        while count != 0 {
            guard bytes[end] != breakCode else { return end + 1 }
            end = self.end(checked: bytes, at: end)
            count -= 1
        }
        return end
    }
}

/// Checks the form of an item before anybody reads it. It recurses as deep as `Limits.depth`.
private struct Check {
    let bytes: UnsafeRawBufferPointer
    /// The end of the message.
    let end: Int
    let limits: CBOR.Limits
    private var items = 0

    init(bytes: UnsafeRawBufferPointer, end: Int, limits: CBOR.Limits) {
        self.bytes = bytes
        self.end = end
        self.limits = limits
    }

    private static let truncated = Malformed("the CBOR is truncated")

    /// Checks the item at `position`, and returns its end.
    mutating func item(at position: Int, depth: Int) throws(Malformed) -> Int {
        items += 1
        guard items <= limits.items else { throw tooManyItems }
        guard depth <= limits.depth else { throw Malformed("the CBOR is nested deeper than \(limits.depth)") }
        let head = try head(at: position)
        var next = position + head.count
        switch head.major {
        case 2, 3:
            var marks = MarkLimit()
            next =
                head.isIndefinite
                ? try parts(at: next, of: head.major, &marks) : try string(at: next, head, &marks)
        case 4: next = try list(at: next, head, depth: depth)
        case 5: next = try map(at: next, head, depth: depth)
        case 6: next = try item(at: next, depth: depth + 1)
        default: break
        }
        return next
    }

    private func head(at position: Int) throws(Malformed) -> Head {
        guard position < end else { throw Self.truncated }
        let information = bytes[position] & 0x1F
        let major = bytes[position] >> 5
        guard position + Head.argumentCount(information) < end else { throw Self.truncated }
        let head = Head(checked: bytes, at: position)
        switch (major, information) {
        case (_, 28...30): throw Malformed("a head has a reserved value")
        case (2...5, 31): break
        case (_, 31): throw Malformed("a break ends nothing")
        case (7, 24) where head.argument < 32: throw Malformed("a simple value is in the wrong form")
        default: break
        }
        return head
    }

    /// The content of a string with a length. `marks` counts through all parts of a text.
    private func string(at position: Int, _ head: Head, _ marks: inout MarkLimit) throws(Malformed) -> Int {
        guard head.argument <= UInt64(end - position) else { throw Self.truncated }
        let next = position + Int(head.argument)
        if head.major == 3 { try text(position..<next, &marks) }
        return next
    }

    /// The parts of a string with an indefinite length: strings of the same type with a length. RFC 8949, 3.2.3.
    private mutating func parts(
        at position: Int,
        of major: UInt8,
        _ marks: inout MarkLimit
    ) throws(Malformed) -> Int {
        var next = position
        var count = 0
        while try !isBreak(at: next) {
            count += 1
            items += 1
            guard bytes[next] >> 5 == major, bytes[next] & 0x1F != 31 else {
                throw Malformed("a part of a string is no string")
            }
            guard count <= limits.entries else { throw tooMany }
            guard items <= limits.items else { throw tooManyItems }
            let head = try head(at: next)
            next = try string(at: next + head.count, head, &marks)
        }
        return next + 1
    }

    private mutating func list(at position: Int, _ head: Head, depth: Int) throws(Malformed) -> Int {
        var next = position
        var count = 0
        while try head.isIndefinite ? !isBreak(at: next) : count < head.argument {
            count += 1
            guard count <= limits.entries else { throw tooMany }
            next = try item(at: next, depth: depth + 1)
        }
        return head.isIndefinite ? next + 1 : next
    }

    private mutating func map(at position: Int, _ head: Head, depth: Int) throws(Malformed) -> Int {
        var next = position
        var keys: Set<Key> = []
        while try head.isIndefinite ? !isBreak(at: next) : keys.count < head.argument {
            guard keys.count < limits.entries else { throw tooMany }
            let value = try item(at: next, depth: depth + 1)
            guard let key = Key(bytes, next..<value) else { throw Malformed("a key of a map has no length") }
            guard keys.insert(key).inserted else { throw Malformed("a map has a key twice") }
            next = try item(at: value, depth: depth + 1)
        }
        return head.isIndefinite ? next + 1 : next
    }

    private var tooMany: Malformed { Malformed("an array, map or string has more than \(limits.entries) parts") }

    private var tooManyItems: Malformed { Malformed("the CBOR has more than \(limits.items) items") }

    private func isBreak(at position: Int) throws(Malformed) -> Bool {
        guard position < end else { throw Self.truncated }
        return bytes[position] == Head.breakCode
    }

    private func text(_ range: Range<Int>, _ marks: inout MarkLimit) throws(Malformed) {
        var decoder = UTF8()
        var iterator = bytes[range].makeIterator()
        while true {
            switch decoder.decode(&iterator) {
            case .scalarValue(let scalar):
                guard marks.admits(scalar) else { throw Malformed("a text has too many combining marks in a row") }
            case .emptyInput: return
            case .error: throw Malformed("a text is no UTF-8")
            }
        }
    }
}

/// A key of a map. The same number in a longer form is the same key.
private enum Key: Hashable {
    case number(major: UInt8, UInt64)
    case other([UInt8])

    /// The key in these bytes; nil for a string with an indefinite length, which could be the same as another one.
    init?(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) {
        let head = Head(checked: bytes, at: range.lowerBound)
        switch head.major {
        case 0, 1: self = .number(major: head.major, head.argument)
        case 2, 3:
            guard !head.isIndefinite else { return nil }
            // The content with its type: the form of the length does not matter.
            self = .other([head.major] + bytes[range.lowerBound + head.count..<range.upperBound])
        default: self = .other([0xFF] + bytes[range])
        }
    }
}
