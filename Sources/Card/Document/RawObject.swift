// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Text

/// A data object with the bytes as they were found, since signatures and hashes cover those.
struct RawObject {
    let object: BERTLV
    let raw: ArraySlice<UInt8>

    var tag: UInt32 { object.tag }
    var value: [UInt8] { object.value }

    /// Reads exactly one object.
    init(_ bytes: [UInt8]) throws(Malformed) {
        let objects = try Self.sequence(bytes, limit: 1)
        guard let first = objects.first else { throw .truncated }
        self = first
    }

    private init(_ object: BERTLV, raw: ArraySlice<UInt8>) { (self.object, self.raw) = (object, raw) }

    /// The objects of the value.
    /// - Throws: `.leftOver` for more than `limit`.
    func children(limit: Int = 64) throws(Malformed) -> [RawObject] { try Self.sequence(value, limit: limit) }

    /// Reads all objects of some bytes.
    static func sequence(_ bytes: [UInt8], limit: Int) throws(Malformed) -> [RawObject] {
        var reader = BERReader(bytes)
        var objects: [RawObject] = []
        while !reader.isAtEnd {
            guard objects.count < limit else { throw .leftOver }
            let start = bytes.count - reader.remainder.count
            let object = try reader.next()
            objects.append(RawObject(object, raw: bytes[start..<bytes.count - reader.remainder.count]))
        }
        return objects
    }
}

/// Makes definite lengths of indefinite ones, and plain octet strings of those in parts. Old EF.SOD have both.
/// X.690 8.1.3.6, 8.7.3.
enum IndefiniteLengths {
    private static let maximumDepth = 16

    /// Returns the same bytes if they have no indefinite length; nil for bytes that are no objects.
    static func resolve(_ bytes: [UInt8]) -> [UInt8]? {
        if (try? BERTLV.sequence(bytes)) != nil, !bytes.starts(with: [0x30, 0x80]) { return bytes }
        var position = 0
        guard let object = next(bytes, &position, depth: 0), position == bytes.count else { return nil }
        return object
    }

    /// Reads one object from `position` on, and returns it with definite lengths.
    private static func next(_ bytes: [UInt8], _ position: inout Int, depth: Int) -> [UInt8]? {
        guard depth < maximumDepth, position + 2 <= bytes.count else { return nil }
        let tag = bytes[position]
        guard tag & 0x1F != 0x1F else { return nil }
        guard bytes[position + 1] == 0x80 else {
            var reader = BERReader(bytes[position...])
            guard let object = try? reader.next() else { return nil }
            position = bytes.count - reader.remainder.count
            guard tag & 0x20 != 0 else { return object.encoded }
            return constructed(tag, object.value, depth: depth)
        }
        guard tag & 0x20 != 0 else { return nil }
        position += 2
        var content: [UInt8] = []
        while true {
            guard position + 2 <= bytes.count else { return nil }
            if bytes[position] == 0, bytes[position + 1] == 0 { break }
            guard let child = next(bytes, &position, depth: depth + 1) else { return nil }
            content += child
        }
        position += 2
        return joined(tag, content)
    }

    private static func constructed(_ tag: UInt8, _ value: [UInt8], depth: Int) -> [UInt8]? {
        var position = 0
        var content: [UInt8] = []
        while position < value.count {
            guard let child = next(value, &position, depth: depth + 1) else { return nil }
            content += child
        }
        return joined(tag, content)
    }

    /// Encodes an object; the parts of an octet string (24) become one.
    private static func joined(_ tag: UInt8, _ content: [UInt8]) -> [UInt8]? {
        guard tag == 0x24 else { return BERTLV(UInt32(tag), content).encoded }
        guard let parts = try? BERTLV.sequence(content), parts.allSatisfy({ $0.tag == 0x04 }) else { return nil }
        return BERTLV(0x04, parts.flatMap(\.value)).encoded
    }
}
