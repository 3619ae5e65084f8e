// SPDX-License-Identifier: GPL-3.0-or-later
import CZlib

/// Makes zip archives, right and wrong ones.
struct ZipMaker {
    struct Entry {
        var name: String
        var content: [UInt8]
        var isDeflated = true
        var flags = 0
        /// The length that the archive says; nil: the true one.
        var claimedCount: Int?
    }

    private(set) var bytes: [UInt8] = []

    init(_ entries: [Entry], comment: [UInt8] = []) {
        var directory: [UInt8] = []
        for entry in entries {
            let packed = entry.isDeflated ? Self.deflate(entry.content) : entry.content
            let method = entry.isDeflated ? 8 : 0
            let checksum = Int(crc32(0, entry.content, uInt(entry.content.count)))
            let name = Array(entry.name.utf8)
            let sizes =
                Self.number(checksum, 4) + Self.number(packed.count, 4)
                + Self.number(entry.claimedCount ?? entry.content.count, 4) + Self.number(name.count, 2)
            directory += Self.number(0x0201_4B50, 4) + Self.number(20, 2) + Self.number(20, 2)
            directory += Self.number(entry.flags, 2) + Self.number(method, 2) + Self.number(0, 4) + sizes
            directory += Self.number(0, 2) + Self.number(0, 2) + Self.number(0, 2) + Self.number(0, 2)
            directory += Self.number(0, 4) + Self.number(bytes.count, 4) + name
            bytes += Self.number(0x0403_4B50, 4) + Self.number(20, 2) + Self.number(entry.flags, 2)
            bytes += Self.number(method, 2) + Self.number(0, 4) + sizes + Self.number(0, 2) + name + packed
        }
        let start = bytes.count
        bytes += directory
        bytes += Self.number(0x0605_4B50, 4) + Self.number(0, 4) + Self.number(entries.count, 2)
        bytes += Self.number(entries.count, 2) + Self.number(directory.count, 4) + Self.number(start, 4)
        bytes += Self.number(comment.count, 2) + comment
    }

    private static func number(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    private static func deflate(_ content: [UInt8]) -> [UInt8] {
        var stream = z_stream()
        let size = Int32(MemoryLayout<z_stream>.size)
        deflateInit2_(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size)
        defer { deflateEnd(&stream) }
        var input = content
        var output = [UInt8](repeating: 0, count: content.count + 1024)
        input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                (stream.next_in, stream.avail_in) = (input.baseAddress, uInt(input.count))
                (stream.next_out, stream.avail_out) = (output.baseAddress, uInt(output.count))
                _ = CZlib.deflate(&stream, Z_FINISH)
            }
        }
        return Array(output.prefix(Int(stream.total_out)))
    }
}
