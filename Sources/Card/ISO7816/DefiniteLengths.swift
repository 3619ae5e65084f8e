// SPDX-License-Identifier: GPL-3.0-or-later

/// Makes DER of BER, where signed files are not in DER: definite lengths of indefinite ones, and plain strings of those
/// in parts, at any depth. Old EF.SOD have both. X.690 8.1.3.6, 8.7.3.
package enum DefiniteLengths {
    /// The greatest depth that is looked into. A key with explicit parameters in a certificate of a signed file has 12.
    private static let maximumDepth = 24
    /// The strings that may be in parts: bits, octets, and the texts of names.
    private static let strings: Set<UInt8> = [0x03, 0x04, 0x0C, 0x13, 0x14, 0x16, 0x1E]

    /// One object. `rewritten` is nil if it can stay as it was found.
    private struct Object {
        let end: Int
        var rewritten: [UInt8]?
    }

    /// Reads the first object, and returns it with definite lengths, and how many bytes it had. What needs no change
    /// stays as it was found. Returns nil for bytes that are no object.
    package static func first(of bytes: [UInt8]) -> (object: [UInt8], count: Int)? {
        guard let object = next(bytes, 0, bytes.count, 0, isShortening: false) else { return nil }
        let found = object.end == bytes.count ? bytes : Array(bytes[..<object.end])
        return (object.rewritten ?? found, object.end)
    }

    /// Reads exactly one object; nil for other bytes.
    package static func resolve(_ bytes: [UInt8]) -> [UInt8]? {
        guard let (object, count) = first(of: bytes), count == bytes.count else { return nil }
        return object
    }

    /// Encodes the lengths of one object and of all in it with as few bytes as possible, as DER requires.
    package static func shortest(_ bytes: [UInt8]) -> [UInt8] {
        next(bytes, 0, bytes.count, 0, isShortening: true)?.rewritten ?? bytes
    }

    private static func next(
        _ bytes: [UInt8],
        _ start: Int,
        _ limit: Int,
        _ depth: Int,
        isShortening: Bool
    ) -> Object? {
        guard depth < maximumDepth, start + 2 <= limit else { return nil }
        let tag = bytes[start]
        let isLongTag = tag & 0x1F == 0x1F
        guard bytes[start + 1] == 0x80, !isLongTag else {
            var reader = BERReader(bytes[start..<min(limit, start + 7)])
            guard let header = reader.header(), header.length <= limit - start - header.count else { return nil }
            let content = start + header.count
            let end = content + header.length
            var object = Object(end: end)
            if tag & 0x20 != 0, !isLongTag,
                let children = children(bytes, content, end, depth, isEndMarked: false, isShortening: isShortening)
            {
                object.rewritten = children.rewritten.map { join(tag, $0) }
            }
            if isString(tag), object.rewritten == nil { object.rewritten = join(tag, Array(bytes[content..<end])) }
            if isShortening, object.rewritten == nil {
                object.rewritten = BERTLV(header.tag, Array(bytes[content..<end])).encoded
            }
            return object
        }
        guard tag & 0x20 != 0,
            let inside = children(bytes, start + 2, limit, depth, isEndMarked: true, isShortening: isShortening)
        else { return nil }
        let content = inside.rewritten ?? Array(bytes[(start + 2)..<(inside.end - 2)])
        return Object(end: inside.end, rewritten: join(tag, content))
    }

    /// Reads objects up to `end`, or up to the mark of an indefinite length; nil if they are none.
    private static func children(
        _ bytes: [UInt8],
        _ start: Int,
        _ end: Int,
        _ depth: Int,
        isEndMarked: Bool,
        isShortening: Bool
    ) -> Object? {
        var position = start
        var isRewritten = false
        var parts: [(range: Range<Int>, rewritten: [UInt8]?)] = []
        while true {
            if isEndMarked {
                guard position + 2 <= end else { return nil }
                if bytes[position] == 0, bytes[position + 1] == 0 { break }
            } else if position == end {
                break
            }
            guard let object = next(bytes, position, end, depth + 1, isShortening: isShortening) else { return nil }
            parts.append((position..<object.end, object.rewritten))
            isRewritten = isRewritten || object.rewritten != nil
            position = object.end
        }
        let content = isRewritten ? parts.flatMap { $0.rewritten ?? Array(bytes[$0.range]) } : nil
        return Object(end: isEndMarked ? position + 2 : position, rewritten: content)
    }

    private static func isString(_ tag: UInt8) -> Bool { tag & 0xE0 == 0x20 && strings.contains(tag & 0x1F) }

    /// Encodes an object; the parts of a string become one.
    private static func join(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        guard isString(tag), let parts = try? BERTLV.sequence(content) else {
            return BERTLV(UInt32(tag), content).encoded
        }
        // Each part of a string of bits begins with the number of its bits that do not count.
        let isBits = tag & 0x1F == 0x03
        let unused = isBits ? Array(parts.last?.value.prefix(1) ?? [0]) : []
        return BERTLV(UInt32(tag & 0x1F), unused + parts.flatMap { $0.value.dropFirst(isBits ? 1 : 0) }).encoded
    }
}

/// Finds the end of an object with an indefinite length while its bytes come. X.690 8.1.3.6.
package struct IndefiniteLength: Sendable {
    /// Where the next header begins.
    private var position = 0
    /// How many objects wait for their end.
    private var depth = 0
    private static let maximumDepth = 24

    package init() {}

    /// Returns how many bytes the object has at least: as many as it has when its end is there. Call it with more and
    /// more of the same bytes. Returns nil for bytes that are no object with an indefinite length.
    package mutating func least(of bytes: [UInt8]) -> Int? {
        while position == 0 || depth > 0 {
            guard position + 2 <= bytes.count else { break }
            let isEnd = bytes[position] == 0 && bytes[position + 1] == 0
            let isIndefinite = bytes[position + 1] == 0x80 && bytes[position] & 0x1F != 0x1F
            if isEnd, depth > 0 {
                depth -= 1
                position += 2
            } else if isIndefinite {
                guard bytes[position] & 0x20 != 0, depth < Self.maximumDepth else { return nil }
                depth += 1
                position += 2
            } else {
                guard depth > 0 else { return nil }
                let head = bytes[position..<min(bytes.count, position + Self.maximumHeader)]
                var reader = BERReader(head)
                guard let header = reader.header() else {
                    // More of the header may come.
                    return head.count < Self.maximumHeader ? bytes.count + 1 : nil
                }
                position += header.count + header.length
            }
        }
        // Each object that is open ends with two bytes.
        return position + 2 * depth
    }

    /// Three bytes of a tag, four of a length.
    private static let maximumHeader = 7
}
