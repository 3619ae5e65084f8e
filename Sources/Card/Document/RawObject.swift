// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Text

/// A data object with the bytes as they were found, since signatures and hashes cover those.
struct RawObject {
    let object: BERTLV
    let raw: ArraySlice<UInt8>

    var tag: UInt32 { object.tag }
    var value: [UInt8] { object.value }
    /// The bytes of a number in two's complement, as few as possible: some programs write more.
    var integer: [UInt8] {
        var bytes = object.value[...]
        while let first = bytes.first, let second = bytes.dropFirst().first, first == (second & 0x80 == 0 ? 0 : 0xFF) {
            bytes = bytes.dropFirst()
        }
        return Array(bytes)
    }

    /// Reads exactly one object.
    init(_ bytes: [UInt8]) throws(Malformed) {
        let objects = try Self.sequence(bytes, limit: 1)
        guard let first = objects.first else { throw .truncated }
        self = first
    }

    /// Reads exactly one object, whose lengths may be indefinite.
    init(definite bytes: [UInt8]) throws(Malformed) {
        guard let resolved = DefiniteLengths.resolve(bytes) else { throw .invalidLength }
        try self.init(resolved)
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
