// SPDX-License-Identifier: GPL-3.0-or-later
import CZlib
package import Text

/// Reads a zip archive in memory. PKWARE APPNOTE 4.3; entries that are stored or deflated, without encryption.
///
/// Every offset and length is checked. The content of an entry is unpacked only up to a given limit.
package struct ZipArchive: Sendable {
    package struct Entry: Sendable, Equatable {
        package let name: String
        /// The number of bytes of the content, as the archive states it.
        package let count: Int
        fileprivate let method: Int
        fileprivate let isEncrypted: Bool
        fileprivate let packedCount: Int
        fileprivate let checksum: UInt
        fileprivate let offset: Int

        /// Whether the entry is a folder, which has no content.
        package var isFolder: Bool { name.hasSuffix("/") }
    }

    /// The maximum number of entries of an archive.
    package static let maximumEntries = 10_000

    package let entries: [Entry]
    private let bytes: [UInt8]

    /// Whether bytes begin as an archive does.
    package static func looksLike(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: [0x50, 0x4B, 3, 4]) || bytes.starts(with: [0x50, 0x4B, 5, 6])
    }

    /// Reads the directory of the archive.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        self.bytes = bytes
        guard let end = Self.end(of: bytes) else { throw Malformed(Phrase("the zip archive has no directory")) }
        let count = Self.number(bytes, end + 10, 2)
        let start = Self.number(bytes, end + 16, 4)
        guard count != 0xFFFF, start != 0xFFFF_FFFF else {
            throw Malformed(Phrase("badgectl does not read zip archives of the ZIP64 format"))
        }
        guard count <= Self.maximumEntries else { throw Malformed(Phrase("the zip archive has too many entries")) }
        var entries: [Entry] = []
        var position = start
        for _ in 0..<count {
            guard position <= end - 46, Self.number(bytes, position, 4) == 0x0201_4B50 else {
                throw Malformed(Phrase("the directory of the zip archive is damaged"))
            }
            let lengths = [28, 30, 32].map { Self.number(bytes, position + $0, 2) }
            let next = position + 46 + lengths[0] + lengths[1] + lengths[2]
            guard next <= end else { throw Malformed(Phrase("the directory of the zip archive is damaged")) }
            entries.append(
                Entry(
                    name: String(decoding: bytes[(position + 46)..<(position + 46 + lengths[0])], as: UTF8.self),
                    count: Self.number(bytes, position + 24, 4),
                    method: Self.number(bytes, position + 10, 2),
                    isEncrypted: Self.number(bytes, position + 8, 2) & 1 != 0,
                    packedCount: Self.number(bytes, position + 20, 4),
                    checksum: UInt(Self.number(bytes, position + 16, 4)),
                    offset: Self.number(bytes, position + 42, 4)
                )
            )
            position = next
        }
        self.entries = entries
    }

    /// Unpacks an entry that has at most `limit` bytes.
    package func content(of entry: Entry, limit: Int) throws(Malformed) -> [UInt8] {
        guard !entry.isEncrypted else { throw Malformed(Phrase("is encrypted")) }
        guard entry.count <= limit else { throw Malformed(Phrase("is too long")) }
        guard entry.offset <= bytes.count - 30, Self.number(bytes, entry.offset, 4) == 0x0403_4B50 else {
            throw Malformed(Phrase("is not at its place in the zip archive"))
        }
        let start =
            entry.offset + 30 + Self.number(bytes, entry.offset + 26, 2) + Self.number(bytes, entry.offset + 28, 2)
        guard start <= bytes.count, entry.packedCount <= bytes.count - start else {
            throw Malformed(Phrase("is not complete"))
        }
        let packed = bytes[start..<(start + entry.packedCount)]
        let content: [UInt8]?
        switch entry.method {
        case 0: content = Array(packed)
        case 8: content = Self.inflate(packed, count: entry.count)
        default: throw Malformed(Phrase("is compressed with a method that badgectl does not know"))
        }
        guard let content, content.count == entry.count,
            crc32(0, content, uInt(content.count)) == entry.checksum
        else { throw Malformed(Phrase("is damaged")) }
        return content
    }

    /// Unpacks raw deflate data that has exactly `count` bytes. The C function is inflate.
    private static func inflate(_ packed: ArraySlice<UInt8>, count: Int) -> [UInt8]? {
        var stream = z_stream()
        guard inflateInit2_(&stream, -MAX_WBITS, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            return nil
        }
        defer { inflateEnd(&stream) }
        var input = Array(packed)
        // One extra byte: if the content is longer than the archive states, the stream does not end in this buffer.
        var output = [UInt8](repeating: 0, count: count + 1)
        let isComplete = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                (stream.next_in, stream.avail_in) = (input.baseAddress, uInt(input.count))
                (stream.next_out, stream.avail_out) = (output.baseAddress, uInt(output.count))
                return CZlib.inflate(&stream, Z_FINISH) == Z_STREAM_END
            }
        }
        guard isComplete, Int(stream.total_out) == count else { return nil }
        output.removeLast()
        return output
    }

    /// The position of the end record: the last one whose comment ends the archive.
    private static func end(of bytes: [UInt8]) -> Int? {
        guard bytes.count >= 22 else { return nil }
        let last = bytes.count - 22
        for position in stride(from: last, through: max(0, last - 0xFFFF), by: -1)
        where bytes[position] == 0x50 && number(bytes, position, 4) == 0x0605_4B50
            && number(bytes, position + 20, 2) == last - position
        {
            return position
        }
        return nil
    }

    /// Reads a little-endian number; the caller has checked that it is within the bytes.
    private static func number(_ bytes: [UInt8], _ position: Int, _ count: Int) -> Int {
        bytes[position..<(position + count)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
